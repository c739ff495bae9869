# An image of the clone: docker build --tag deponent .
# docs/operations.md says how it is run.
FROM rust:1-trixie AS build
WORKDIR /deponent
COPY . .
RUN cargo build --release --locked --package deponent-node --bin deponent

FROM debian:trixie-slim
COPY --from=build /deponent/target/release/deponent /usr/bin/deponent
COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/deponent/
# The data directory, also for a user that --user names.
RUN install -d -m 0777 /var/lib/deponent
VOLUME /var/lib/deponent
EXPOSE 8545 8546 8551 6060
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/deponent"]
CMD ["node", "--datadir=/var/lib/deponent", "--http.addr=0.0.0.0", "--authrpc.addr=0.0.0.0"]
