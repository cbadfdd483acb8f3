//! Makes Rust of the description of the gRPC service, without a foreign compiler.

fn main() {
    println!("cargo::rerun-if-changed=proto/aaep.proto");
    #[cfg(feature = "grpc")]
    grpc().expect("proto/aaep.proto describes the service");
}

#[cfg(feature = "grpc")]
fn grpc() -> Result<(), Box<dyn std::error::Error>> {
    use prost::Message as _;

    let described = protox::compile(["aaep.proto"], ["proto"])?;
    let folder = std::path::PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    std::fs::write(folder.join("aaep.v1.bin"), described.encode_to_vec())?;
    // Connections are ours: see `link` and the hub's server.
    tonic_prost_build::configure().build_transport(false).compile_fds(described)?;
    Ok(())
}
