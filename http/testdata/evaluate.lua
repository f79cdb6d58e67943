-- What wrk sends in BenchmarkEvaluateHTTP. It prints the number of answers, and of those that were errors.
wrk.method = "POST"
wrk.body = os.getenv("BENCH_BODY")
wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN")
wrk.headers["X-Tenant-ID"] = os.getenv("BENCH_TENANT")
wrk.headers["Content-Type"] = "application/json"

function done(summary)
  local e = summary.errors
  print("answers", summary.requests, "errors", e.connect + e.read + e.write + e.status + e.timeout)
end
