//! nginx with nchan, where both are installed as Debian packages: `nginx` and `libnginx-mod-nchan`.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::FanoutSample;
use super::server::FanoutServer;
use super::wire::{MeasuredAddress, ServerKind};
use crate::process::ProcessUsage;
use crate::serve::HttpConnection;

const PROGRAM: &str = "/usr/sbin/nginx";
const MODULE: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";

/// The longest that a start may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running nginx.
pub(super) struct NchanServer {
    child: Child,
    /// The process id of the only worker.
    worker: u32,
    address: SocketAddr,
    publisher: HttpConnection,
    event: String,
    _folder: TempDir,
}

/// Whether nginx and nchan are installed.
pub(super) fn is_there() -> bool {
    [PROGRAM, MODULE].iter().all(|path| Path::new(path).is_file())
}

impl NchanServer {
    pub(super) fn start(subscribers: usize, sample: &FanoutSample) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("nginx: {error}");
        let folder = TempDir::new().map_err(failed)?;
        // Another program could take the port before nginx does; nginx then reports that and does not start.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let address = free.map_err(failed)?;
        let config = folder.path().join("nginx.conf");
        fs::write(&config, configuration(folder.path(), address, subscribers)).map_err(failed)?;
        let mut child = Command::new(PROGRAM)
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        match wait_for(&child, address) {
            Ok((worker, publisher)) => {
                let event = sample.json.clone();
                Ok(NchanServer { child, worker, address, publisher, event, _folder: folder })
            }
            Err(why) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(why)
            }
        }
    }
}

fn configuration(folder: &Path, address: SocketAddr, subscribers: usize) -> String {
    let folder = folder.display();
    // nginx closes idle connections when only a sixteenth of its room is left.
    let room = subscribers * 5 / 4 + 1000;
    format!(
        "load_module {MODULE};\nuser root;\nworker_processes 1;\n\
         daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log crit;\n\
         events {{ worker_connections {room}; }}\n\
         http {{\naccess_log off;\nkeepalive_requests 1000000000;\nkeepalive_timeout 1d;\ntcp_nodelay on;\n\
         client_body_temp_path {folder}/body;\nproxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/fastcgi;\nuwsgi_temp_path {folder}/uwsgi;\n\
         scgi_temp_path {folder}/scgi;\n\
         server {{\nlisten {address} backlog=4096;\n\
         location = /publish {{ nchan_publisher http; nchan_channel_id bench;\n\
         nchan_message_buffer_length 256; nchan_message_timeout 20s; }}\n\
         location = /events {{ nchan_subscriber eventsource; nchan_channel_id bench;\n\
         nchan_subscriber_first_message newest; }}\n}}\n}}\n"
    )
}

/// Waits until nginx accepts connections and its worker runs.
fn wait_for(child: &Child, address: SocketAddr) -> Result<(u32, HttpConnection), String> {
    let began = Instant::now();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    while began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(50));
        let workers = fs::read_to_string(&children).unwrap_or_default();
        let worker = workers.split_whitespace().next().and_then(|it| it.parse().ok());
        if let (Some(worker), Ok(publisher)) = (worker, HttpConnection::open(address)) {
            return Ok((worker, publisher));
        }
    }
    Err("nginx with nchan does not start".to_owned())
}

impl FanoutServer for NchanServer {
    fn kind(&self) -> ServerKind {
        ServerKind::Nchan
    }

    fn address(&self) -> MeasuredAddress {
        MeasuredAddress::Tcp(self.address)
    }

    /// Opens a new connection, because one that was idle for a while may be closed.
    fn begin(&mut self) -> Result<(), String> {
        self.publisher = HttpConnection::open(self.address)?;
        Ok(())
    }

    /// Sends all requests at once, then reads all answers.
    fn tell(&mut self, events: usize) -> Result<(), String> {
        let (host, length, event) = (self.address, self.event.len(), &self.event);
        let request = format!(
            "POST /publish HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{event}"
        );
        self.publisher.send(&request.repeat(events))?;
        for _ in 0..events {
            let (status, length) = self.publisher.head()?;
            let mut body = vec![0; length];
            self.publisher.stream.read_exact(&mut body).map_err(|error| error.to_string())?;
            if !matches!(status, 200..=202) {
                return Err(format!("nginx with nchan answered {status}"));
            }
        }
        Ok(())
    }

    fn usage(&self) -> Result<ProcessUsage, String> {
        ProcessUsage::of(self.worker)
    }
}

impl Drop for NchanServer {
    fn drop(&mut self) {
        // The main process stops its worker when asked to end, and is killed if it does not end.
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
