// Cuts GitHub's published description of its API to what tidegate asks, so that a server of it starts in a second, and makes it
// stricter: a field that is not described is refused.
// Usage: node cut.mjs PACKAGES FOLDER : makes, of the packages `openapi` and `webhooks-examples`, in that folder
//   parts.json     for a stand-in: an answer may leave out fields, and has none that is not described
//   examples.json  for a client: answers are GitHub's own examples
//   least.json     for a client: the same with nothing but what must be there, and null where that is allowed
//   webhooks.json  GitHub's own examples of webhooks: [name, what is sent]
import { readFileSync, writeFileSync } from "node:fs";

const [packages, folder] = process.argv.slice(2);
const repository = "/repos/{owner}/{repo}";
const used = {
  "/app": ["get"],
  "/app/installations/{installation_id}/access_tokens": ["post"],
  "/orgs/{org}/teams/{team_slug}/memberships/{username}": ["get"],
  "/orgs/{org}/teams/{team_slug}/repos/{owner}/{repo}": ["get"],
  "/user": ["get"],
  "/users/{username}": ["get"],
  [repository]: ["get"],
  [`${repository}/branches/{branch}`]: ["get"],
  [`${repository}/branches/{branch}/protection`]: ["get", "put"],
  [`${repository}/check-runs`]: ["post"],
  [`${repository}/check-runs/{check_run_id}`]: ["patch"],
  [`${repository}/collaborators/{username}/permission`]: ["get"],
  [`${repository}/commits/{commit_sha}/pulls`]: ["get"],
  [`${repository}/commits/{ref}`]: ["get"],
  [`${repository}/commits/{ref}/check-runs`]: ["get"],
  [`${repository}/contents/{path}`]: ["get"],
  [`${repository}/hooks`]: ["get"],
  [`${repository}/installation`]: ["get"],
  [`${repository}/issues/{issue_number}`]: ["get"],
  [`${repository}/issues/{issue_number}/comments`]: ["get", "post"],
  [`${repository}/issues/{issue_number}/labels`]: ["post"],
  [`${repository}/issues/comments/{comment_id}`]: ["patch"],
  [`${repository}/pulls`]: ["get", "post"],
  [`${repository}/pulls/{pull_number}`]: ["get", "patch"],
  [`${repository}/pulls/{pull_number}/commits`]: ["get"],
  [`${repository}/pulls/{pull_number}/reviews`]: ["get"],
  [`${repository}/rules/branches/{branch}`]: ["get"],
  [`${repository}/rulesets`]: ["post"],
  [`${repository}/statuses/{sha}`]: ["post"],
};

const read = (file) => JSON.parse(readFileSync(`${packages}/${file}`, "utf8"));
const write = (file, value) => writeFileSync(`${folder}/${file}`, JSON.stringify(value));
const whole = read("openapi/generated/api.github.com.json");

function* inside(value) {
  if (value === null || typeof value !== "object") return;
  yield value;
  for (const part of Object.values(value)) yield* inside(part);
}
const at = (reference) => reference.slice(2).split("/").reduce((value, name) => value[name], whole);

// What is meant for people and other tools, and is most of it.
for (const value of inside(whole)) {
  for (const name of Object.keys(value)) {
    const isText = name === "description" && typeof value[name] === "string" && !("content" in value || "headers" in value);
    if (name.startsWith("x-") && name !== "x-multi-segment") delete value[name];
    else if (isText) delete value[name];
  }
}

const resolved = (part) => (part?.$ref ? resolved(at(part.$ref)) : part);
// Some of them stand for others.
const example = (one) => (resolved(one).value?.$ref ? example(resolved(one).value) : resolved(one).value);
function tidy(response) {
  // The example of a list's headers leads from page to page for ever.
  delete response.headers;
  // Of one without a description Prism knows nothing.
  if (!response.$ref) response.description ??= "";
  for (const told of Object.values(response.content ?? {}))
    for (const name of Object.keys(told.examples ?? {})) told.examples[name] = { value: example(told.examples[name]) };
}

const paths = {};
for (const [path, methods] of Object.entries(used)) {
  const found = whole.paths[path];
  for (const method of methods) if (!found?.[method]) throw new Error(`GitHub describes no ${method} ${path}`);
  const kept = Object.fromEntries(methods.map((method) => [method, found[method]]));
  for (const { responses } of Object.values(kept)) for (const response of Object.values(responses)) tidy(response);
  paths[path] = kept;
  // A path of files is as long as it likes, which OpenAPI cannot say.
  if (path.endsWith("/{path}")) {
    for (let parts = 2; parts <= 5; parts++) {
      const names = Array.from({ length: parts }, (_, n) => (n ? `path${n}` : "path"));
      const get = structuredClone(kept.get);
      get.operationId += parts;
      for (const name of names.slice(1)) get.parameters.push({ name, in: "path", required: true, schema: { type: "string" } });
      paths[`${path.slice(0, -"{path}".length)}${names.map((name) => `{${name}}`).join("/")}`] = { get };
    }
  }
}
// Only of a branch with a rule more is asked, and that of the example has none.
paths[`${repository}/branches/{branch}`].get.responses[200].content["application/json"].examples.default.value.protected = true;

// The components that these need, and those that need them.
const components = {};
const waiting = [paths];
while (waiting.length) {
  for (const value of inside(waiting.pop())) {
    const reference = value.$ref;
    if (typeof reference !== "string") continue;
    const [, , kind, name] = reference.split("/");
    if (components[kind]?.[name]) continue;
    (components[kind] ??= {})[name] = at(reference);
    waiting.push(at(reference));
  }
}
const cut = { openapi: whole.openapi, info: whole.info, servers: whole.servers, paths, components };

// All schemas below a value, those too that it refers to; not what is put together with others, which no part knows all fields of.
function* schemas(description, value, seen = new Set()) {
  if (value === null || typeof value !== "object" || seen.has(value)) return;
  seen.add(value);
  if (typeof value.$ref === "string") {
    const [, , kind, name] = value.$ref.split("/");
    yield* schemas(description, description.components[kind][name], seen);
    return;
  }
  yield value;
  for (const [name, part] of Object.entries(value)) {
    if (!["allOf", "example", "examples", "default", "enum"].includes(name)) yield* schemas(description, part, seen);
  }
}
// A field that is not described is refused.
function close(description, value) {
  for (const schema of schemas(description, value)) {
    const isWhole = !["allOf", "oneOf", "anyOf"].some((word) => word in schema);
    if (schema.properties && isWhole) schema.additionalProperties ??= false;
  }
}
const operations = (description) => Object.values(description.paths).flatMap((methods) => Object.values(methods));

const closedRequests = () => {
  const description = structuredClone(cut);
  for (const { requestBody } of operations(description)) close(description, requestBody);
  return description;
};

const parts = closedRequests();
function loosen(schema) {
  if (Array.isArray(schema.required)) delete schema.required;
  // Without what one of them must have, several may fit.
  if (Array.isArray(schema.oneOf)) [schema.anyOf, schema.oneOf] = [schema.oneOf, undefined];
  delete schema.discriminator;
}
for (const { responses } of operations(parts)) {
  close(parts, responses);
  for (const value of inside(responses)) loosen(value);
}
for (const value of inside(parts.components.schemas)) loosen(value);
write("parts.json", parts);

const examples = closedRequests();
write("examples.json", examples);

// What may stand in an object, and what must.
function fields(schema) {
  const all = [schema, ...(schema.allOf ?? []).map(resolved)];
  return [Object.assign({}, ...all.map((one) => one.properties)), all.flatMap((one) => one.required ?? [])];
}
function least(raw, value) {
  const schema = resolved(raw);
  if (Array.isArray(value)) return value.map((one) => (schema.items ? least(schema.items, one) : one));
  if (value === null || typeof value !== "object") return value;
  const several = schema.oneOf ?? schema.anyOf;
  if (several) {
    const fits = several.find((one) => fields(resolved(one))[1].every((name) => name in value));
    return fits ? least(fits, value) : value;
  }
  const [known, needed] = fields(schema);
  const kept = Object.entries(value).filter(([name]) => needed.includes(name) || !(name in known));
  return Object.fromEntries(kept.map(([name, part]) => [name, known[name] ? leastPart(known[name], part) : part]));
}
const leastPart = (raw, value) => (resolved(raw).nullable ? null : least(raw, value));
for (const { responses } of operations(examples)) {
  for (const response of Object.values(responses)) {
    const told = response.content?.["application/json"];
    for (const one of Object.values(told?.examples ?? {})) one.value = least(told.schema, one.value);
  }
}
write("least.json", examples);

const webhooks = read("webhooks-examples/api.github.com/index.json");
write("webhooks.json", webhooks.flatMap(({ name, examples }) => examples.map((example) => [name, example])));
