// GitHub's API in memory: the package `emulate`, with what it lacks and with faults that tests plant.
// usage: node emulator.mjs PACKAGE_DIRECTORY PORT SEED_FILE
//
// Added: reactions, permissions of strangers, runs of workflows with jobs, logs and artifacts, activity, environments, the limit of a
// comment's length. POST /_test/faults plants faults: {method, path (regular expression), status (0: the connection is lost), headers,
// body, late (after the work is done), times}.
// Checked against GitHub's description of its API (@octokit/openapi 23.0.2; contract.py holds our requests against it) and its documentation:
// a token of a workflow may not list runners (403); job logs and artifacts are redirects to a store that refuses a token; a cancel of a run
// that is over is 409; reactions are idempotent; a stranger's permission on a public repository is `read`; bodies end at 65,536 characters.
// Kinder than GitHub: tokens have no permissions of their own (test_token.py compares what each job asks with what it may), there are no rate limits but those planted, events are not sent. POST /_test/state adds runs, environments and activity. GET /_test/state shows it.
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [directory, port, seedFile] = process.argv.slice(2);
const dist = path.join(directory, "dist");
const baseUrl = `http://127.0.0.1:${port}`;

// On loopback alone: the package listens on every address.
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...given) {
  return given[0] !== null && typeof given[0] === "object"
    ? listen.call(this, { ...given[0], host: "127.0.0.1" }, ...given.slice(1))
    : listen.call(this, Number(given[0]), "127.0.0.1", ...given.filter((one) => typeof one === "function"));
};

const state = { faults: [], reactions: [], runs: [], environments: {}, activity: [], cancelled: [] };

function lost(c) {
  c.env.incoming.socket.destroy();
  return new Response(null, { status: 499 });
}

async function faulty(c, next) {
  const url = new URL(c.req.url);
  const fault = state.faults.find((one) => one.method === c.req.method && new RegExp(one.path).test(url.pathname));
  if (!fault || url.pathname.startsWith("/_test/")) return next();
  fault.times = (fault.times ?? 1) - 1;
  if (fault.times <= 0) state.faults.splice(state.faults.indexOf(fault), 1);
  if (fault.late) await next();
  if (fault.status === 0) return lost(c);
  c.res = new Response(fault.body ?? '{"message": "planted"}', { status: fault.status, headers: fault.headers ?? {} });
  return c.res;
}

async function tooLong(c, next) {
  if (["POST", "PATCH"].includes(c.req.method) && /\/issues\/(\d+\/comments|comments\/\d+)$/.test(c.req.path)) {
    const body = (await c.req.raw.clone().json()).body ?? "";
    if (body.length > 65536) return c.json({ message: "Validation Failed", errors: [{ message: "body is too long" }] }, 422);
  }
  return next();
}

function shown(run, full) {
  const repo = { full_name: full, default_branch: "main" };
  return {
    name: "tests", workflow_id: 1, event: "pull_request", status: "completed", conclusion: "failure", head_branch: "topic",
    head_repository: repo, repository: repo, run_attempt: 1, created_at: "2026-11-03T11:00:00Z",
    html_url: `https://github.com/${full}/actions/runs/${run.id}`, actor: { login: "contributor", id: 9 },
    ...Object.fromEntries(Object.entries(run).filter(([key]) => !["jobs", "artifacts"].includes(key))),
  };
}

function extra(app, gh) {
  app.use("*", faulty);
  app.use("*", tooLong);
  app.get("/_test/state", (c) => c.json(state));
  app.post("/_test/faults", async (c) => (state.faults.push(...(await c.req.json())), c.json({})));
  app.post("/_test/state", async (c) => {
    const given = await c.req.json();
    for (const key of ["runs", "activity"]) state[key].push(...(given[key] ?? []));
    Object.assign(state.environments, given.environments ?? {});
    return c.json({});
  });
  const repo = "/repos/:owner/:repo";
  const full = (c) => `${c.req.param("owner")}/${c.req.param("repo")}`;
  const missing = (c) => c.json({ message: "Not Found" }, 404);
  const list = (c, key, items) => {
    const page = Number(c.req.query("page") ?? 1), size = Number(c.req.query("per_page") ?? 30);
    return c.json({ total_count: items.length, [key]: items.slice((page - 1) * size, page * size) });
  };
  const run = (c) => state.runs.find((one) => String(one.id) === c.req.param("run"));
  app.post(`${repo}/issues/comments/:id/reactions`, async (c) => {
    const made = { comment: Number(c.req.param("id")), content: (await c.req.json()).content };
    const twice = state.reactions.some((one) => one.comment === made.comment && one.content === made.content);
    if (!twice) state.reactions.push(made);
    return c.json({ id: state.reactions.length, ...made }, twice ? 200 : 201);
  });
  app.get(`${repo}/collaborators/:login/permission`, (c) => {
    const user = gh.users.findOneBy("login", c.req.param("login"));
    if (!user) return missing(c);
    const known = gh.repos.findOneBy("full_name", full(c));
    const given = known && gh.collaborators.findBy("repo_id", known.id).find((one) => one.user_id === user.id);
    const permission = known?.owner_id === user.id ? "admin" : { push: "write", write: "write", admin: "admin" }[given?.permission] ?? "read";
    return c.json({ permission, role_name: permission, user: { login: user.login, id: user.id } });
  });
  app.get(`${repo}/actions/runs`, (c) => {
    const sha = c.req.query("head_sha");
    return list(c, "workflow_runs", state.runs.filter((one) => !sha || one.head_sha === sha).map((one) => shown(one, full(c))));
  });
  app.get(`${repo}/actions/workflows/:workflow/runs`, (c) => {
    const wanted = state.runs.filter((one) => (one.head_branch ?? "topic") === c.req.query("branch"));
    return list(c, "workflow_runs", wanted.map((one) => shown(one, full(c))));
  });
  app.get(`${repo}/actions/runners`, (c) => c.json({ message: "Resource not accessible by integration" }, 403));
  app.get(`${repo}/actions/runs/:run`, (c) => (run(c) ? c.json(shown(run(c), full(c))) : missing(c)));
  app.post(`${repo}/actions/runs/:run/cancel`, (c) => {
    const found = run(c);
    if (!found) return missing(c);
    if ((found.status ?? "completed") === "completed") return c.json({ message: "Cannot cancel a workflow run that is completed." }, 409);
    Object.assign(found, { status: "completed", conclusion: "cancelled" });
    state.cancelled.push(found.id);
    return c.json({}, 202);
  });
  app.get(`${repo}/actions/runs/:run/jobs`, (c) => (run(c) ? list(c, "jobs", (run(c).jobs ?? []).map(({ log, ...job }) => job)) : missing(c)));
  app.get(`${repo}/actions/runs/:run/artifacts`, (c) =>
    run(c) ? list(c, "artifacts", (run(c).artifacts ?? []).map(({ zip, ...one }) => ({ size_in_bytes: (zip.length * 3) / 4, ...one }))) : missing(c));
  app.get(`${repo}/actions/jobs/:id/logs`, (c) => c.redirect(`${baseUrl}/_blob/log/${c.req.param("id")}`, 302));
  app.get(`${repo}/actions/artifacts/:id/zip`, (c) => c.redirect(`${baseUrl}/_blob/zip/${c.req.param("id")}`, 302));
  app.get("/_blob/:kind/:id", (c) => {
    // the store of GitHub's files refuses a request that brings a token
    if (c.req.header("Authorization")) return c.text("InvalidAuthenticationInfo", 401);
    const found = state.runs.flatMap((one) => (c.req.param("kind") === "log" ? one.jobs : one.artifacts) ?? []).find((one) => String(one.id) === c.req.param("id"));
    if (!found) return missing(c);
    return c.body(found.zip ? Buffer.from(found.zip, "base64") : found.log);
  });
  app.get(`${repo}/commits/:sha/pulls`, async (c) => {
    // asked of the emulator itself, which knows how a pull request is shown
    const all = await app.request(`/repos/${full(c)}/pulls?state=open&per_page=100`, { headers: c.req.raw.headers });
    // GitHub answers [] for a commit that was pushed to a fork alone
    return c.json((await all.json()).filter((one) => one.head.sha === c.req.param("sha") && one.head.repo?.full_name === one.base.repo?.full_name));
  });
  app.get(`${repo}/issues/comments`, async (c) => {
    const own = (path) => app.request(`/repos/${full(c)}${path}`, { headers: c.req.raw.headers }).then((answer) => answer.json());
    const issues = await own("/issues?state=all&per_page=100");
    const all = (await Promise.all(issues.map((one) => own(`/issues/${one.number}/comments?per_page=100`)))).flat();
    const since = c.req.query("since") ?? "", page = Number(c.req.query("page") ?? 1), size = Number(c.req.query("per_page") ?? 30);
    // by the time of creation, which the ids follow; without `sort` the direction is ignored
    const down = c.req.query("sort") && c.req.query("direction") !== "asc" ? -1 : 1;
    return c.json(all.filter((one) => one.updated_at >= since).sort((a, b) => down * (a.id - b.id)).slice((page - 1) * size, page * size));
  });
  app.get(`${repo}/activity`, (c) => c.json(state.activity.filter((one) => one.ref === c.req.query("ref"))));
  app.get(`${repo}/environments/:name`, (c) => {
    const rules = state.environments[c.req.param("name")];
    return rules ? c.json({ name: c.req.param("name"), protection_rules: rules }) : missing(c);
  });
}

let found;
for (const name of fs.readdirSync(dist).filter((one) => /^dist-.*\.js$/.test(one))) {
  const loaded = await import(pathToFileURL(path.join(dist, name)));
  if (loaded.githubPlugin) found = loaded;
}
const original = found.githubPlugin.register;
found.githubPlugin.register = function (app, store, ...rest) {
  extra(app, found.getGitHubStore(store));
  return original.call(this, app, store, ...rest);
};
const { createEmulator } = await import(pathToFileURL(path.join(dist, "api.js")));
await createEmulator({ service: "github", port: Number(port), baseUrl, seed: JSON.parse(fs.readFileSync(seedFile, "utf8")) });
console.log(`ready ${baseUrl}`);
