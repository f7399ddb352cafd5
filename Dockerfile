# Caddy with its standard modules and the rate limiter, as a user without rights.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o /caddy ./cmd/caddy \
	&& mkdir -p /empty/data /empty/config

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /caddy /usr/bin/caddy
COPY --from=build --chown=nonroot:nonroot /empty/ /
ENV XDG_DATA_HOME=/data XDG_CONFIG_HOME=/config
VOLUME ["/data", "/config"]
EXPOSE 8080
ENTRYPOINT ["/usr/bin/caddy"]
CMD ["run", "--config", "/etc/caddy/Caddyfile"]
