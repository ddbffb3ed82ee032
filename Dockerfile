# Builds the one binary and ships it alone: no shell, no root, certificates of the base image.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked && install -D target/dist/plumbline /out/plumbline && mkdir -p /out/data

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /out/plumbline /usr/local/bin/plumbline
COPY --from=build --chown=nonroot:nonroot /out/data /data
VOLUME /data
EXPOSE 8080
ENV PLUMBLINE_DATABASE=/data/plumbline.db
ENTRYPOINT ["plumbline"]
CMD ["serve", "--listen", "0.0.0.0:8080"]
