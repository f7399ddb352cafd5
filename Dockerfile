# Caddy with its standard modules and the rate limiter, as a user without rights. It is compiled on the
# building machine for any other.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN scripts/release.sh compile "$TARGETOS" "$TARGETARCH" /caddy "$VERSION" \
	&& mkdir -p /empty/data /empty/config

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /caddy /usr/bin/caddy
COPY --from=build --chown=nonroot:nonroot /empty/ /
ENV XDG_DATA_HOME=/data XDG_CONFIG_HOME=/config
VOLUME ["/data", "/config"]
EXPOSE 8080
ENTRYPOINT ["/usr/bin/caddy"]
CMD ["run", "--config", "/etc/caddy/Caddyfile"]
