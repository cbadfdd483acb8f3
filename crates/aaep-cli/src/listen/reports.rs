//! Carries the devices' reports from their threads to the loop.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Instant;

use aaep_announce::DeviceReport;
use aaep_announce::device::TimedReport;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The device name in a mark. No device has this name.
const MARK: &str = "mark";

/// The reports of all devices, in the order in which they were sent.
pub(crate) struct DeviceReports {
    to: Sender<TimedReport>,
    passed_on: UnboundedReceiver<TimedReport>,
}

impl DeviceReports {
    /// Devices report from threads outside the runtime, so a thread passes their reports on.
    pub(crate) fn start() -> Self {
        let (reports, pass_on) = DeviceReports::held();
        // Without the thread no report arrives; then every device stalls, which is noticed and told.
        let _ = thread::Builder::new().name("reports".to_owned()).spawn(pass_on);
        reports
    }

    /// Does the same, but passes nothing on until the function runs.
    pub(crate) fn held() -> (Self, impl FnOnce() + Send + 'static) {
        let (to, sent) = channel();
        // The channel itself is unbounded, but a device sends at most a few reports for each order.
        let (sender, passed_on) = unbounded_channel();
        let pass_on = move || {
            for told in sent {
                if sender.send(told).is_err() {
                    return;
                }
            }
        };
        (DeviceReports { to, passed_on }, pass_on)
    }

    /// The sender for devices.
    pub(crate) fn sender(&self) -> &Sender<TimedReport> {
        &self.to
    }

    /// Waits for the next report. `None` if the thread has ended.
    pub(crate) async fn next(&mut self) -> Option<TimedReport> {
        self.passed_on.recv().await
    }

    /// All reports sent before this call and not returned yet. Does not wait for a device. The caller must await the
    /// result: a leftover mark would cut the next result short.
    pub(crate) async fn sent_so_far(&mut self) -> Vec<TimedReport> {
        // The mark takes the same way as the reports, so it arrives after all that were sent before it. If the thread
        // has ended, nothing more arrives, and the loop ends as well.
        let mark = TimedReport { device: MARK, report: DeviceReport::Works, at: Instant::now() };
        let _ = self.to.send(mark);
        let mut sent = Vec::new();
        while let Some(told) = self.next().await.filter(|it| it.device != MARK) {
            sent.push(told);
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use aaep_announce::device::Reporter;

    use super::*;

    fn report(reports: &DeviceReports, number: u64) -> bool {
        Reporter::new("lines", reports.sender().clone()).report(DeviceReport::Ended(number))
    }

    fn told(sent: &[TimedReport]) -> Vec<DeviceReport> {
        sent.iter().map(|it| it.report.clone()).collect()
    }

    #[tokio::test]
    async fn reports_that_were_sent_before_are_waited_for_and_later_ones_are_not() {
        let (mut reports, pass_on) = DeviceReports::held();
        let to = reports.sender().clone();
        assert!(report(&reports, 1) && report(&reports, 2));
        {
            let mut sent = pin!(reports.sent_so_far());
            let mut context = Context::from_waker(Waker::noop());
            assert!(sent.as_mut().poll(&mut context).is_pending(), "nothing was passed on yet");
            assert!(Reporter::new("lines", to).report(DeviceReport::Ended(3)));
            thread::spawn(pass_on);
            assert_eq!(told(&sent.await), [DeviceReport::Ended(1), DeviceReport::Ended(2)]);
        }
        assert!(report(&reports, 4));
        assert_eq!(
            told(&reports.sent_so_far().await),
            [DeviceReport::Ended(3), DeviceReport::Ended(4)]
        );
        assert!(reports.sent_so_far().await.is_empty());
    }

    #[tokio::test]
    async fn nobody_waits_for_reports_that_nobody_passes_on() {
        let (mut reports, pass_on) = DeviceReports::held();
        assert!(report(&reports, 1));
        drop(pass_on);
        assert!(!report(&reports, 2), "nobody wants to know");
        assert!(reports.sent_so_far().await.is_empty());
        assert!(reports.next().await.is_none());
    }
}
