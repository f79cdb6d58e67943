-- What wrk sends in BenchmarkToggle: it switches the flags w-0 to w-319 on and then off again, in turn, so that no two calls under way are about one flag.
-- The flags lie in the tenants of BENCH_TENANTS by turns. It prints the number of answers, of those that were errors, and in
-- microseconds how long they took together and the median of one.
local flags = 320
local requests = {}
local sent = 0

function init()
  local tenants = {}
  for tenant in os.getenv("BENCH_TENANTS"):gmatch("[^,]+") do
    tenants[#tenants + 1] = tenant
  end
  for _, switch in ipairs({"/enable", "/disable"}) do
    for i = 0, flags - 1 do
      local headers = {["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN"), ["X-Tenant-ID"] = tenants[i % #tenants + 1]}
      requests[#requests + 1] = wrk.format("POST", "/api/v1/flags/w-" .. i .. switch, headers)
    end
  end
end

function request()
  sent = sent + 1
  return requests[(sent - 1) % #requests + 1]
end

function done(summary, latency)
  local e = summary.errors
  print("answers", summary.requests, "errors", e.connect + e.read + e.write + e.status + e.timeout, "within", summary.duration, "median", latency:percentile(50))
end
