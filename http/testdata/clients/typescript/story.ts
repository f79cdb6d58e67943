// The main story, told with a client that is made from the OpenAPI document: what does not fit the document does not compile.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

declare const process: { env: Record<string, string | undefined> };

const email = process.env.STORY_EMAIL!, password = "correct horse", flagKey = "from-typescript";
const client = createClient<paths>({ baseUrl: process.env.SERVICE_URL! });

function check(what: string, got: unknown, want: unknown) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

// data is the body of an answer that must be a good one.
function data<T>(answer: { data?: T; error?: { detail?: string }; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.url}: ${answer.response.status}: ${answer.error?.detail}`);
  return answer.data;
}

const signedUp = data(await client.POST("/api/v1/auth/signup", { body: { email, password, displayName: "Ada" } }));
const session = data(await client.POST("/auth/signin", { body: { email, password } }));
client.use({
  onRequest({ request }) {
    request.headers.set("Authorization", `Bearer ${session.token}`);
  },
});
const header = { "X-Tenant-ID": signedUp.data.active_tenant_id };
const created = data(await client.POST("/api/v1/flags", { params: { header }, body: { key: flagKey, type: "boolean", tags: ["story"] } }));
check("a new flag", [created.key, created.enabled, created.projectId], [flagKey, false, null]);

const path = { flagKey };
const before = data(await client.POST("/api/v1/flags/{flagKey}/evaluate", { params: { header, path }, body: { targetingKey: "user-42" } }));
check("what it serves while it is off", [before.enabled, before.value, before.reason], [false, false, "OFF"]);
check("success", data(await client.POST("/api/v1/flags/{flagKey}/enable", { params: { header, path } })).success, true);
const after = data(await client.POST("/api/v1/flags/{flagKey}/evaluate", { params: { header, path }, body: { targetingKey: "user-42" } }));
check("what it serves then", [after.enabled, after.value, after.reason], [true, true, "FALLTHROUGH"]);

const history = data(await client.GET("/api/v1/flags/{flagKey}/history", { params: { header, path } }));
check("its history", history.map((entry) => [entry.action, entry.userName]), [["enabled", "Ada"], ["created", "Ada"]]);

const refused = await client.GET("/api/v1/flags/{flagKey}", { params: { header, path: { flagKey: "none" } } });
check("a flag that is not there", [refused.response.status, refused.error?.title], [404, "Not Found"]);
