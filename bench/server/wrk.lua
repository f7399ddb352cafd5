-- Requests that name one of so many clients, drawn evenly or by Zipf's law, and a summary in one line.
-- Arguments: the header, the number of clients, whether they are drawn by Zipf's law.

local seed = 0

function setup(thread)
	seed = seed + 1
	thread:set("seed", seed)
end

function init(args)
	math.randomseed(seed)
	header, clients, skewed, requests = args[1], tonumber(args[2]), args[3] == "true", {}
	for i = 1, clients do
		local name = string.format("203.%d.%d.%d", math.floor(i / 65536), math.floor(i / 256) % 256, i % 256)
		requests[i] = wrk.format("GET", "/", {[header] = name, Host = wrk.headers["Host"]})
	end
end

function request()
	if skewed then -- the density x^-1.1, from 1 to the number of clients
		local x = (1 + math.random() * (clients ^ -0.1 - 1)) ^ -10
		return requests[math.min(clients, math.floor(x))]
	end
	return requests[math.random(clients)]
end

function done(summary, latency)
	local errors = summary.errors
	io.write(string.format("summary requests=%d us=%d p50=%.0f p99=%.0f failed=%d status=%d\n",
		summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
		errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
