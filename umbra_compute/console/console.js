// The console: reads the API with a key that lives in this tab, and shows what it says.
// Text goes in as text, never as markup: names and errors come from other people's programs.

const LOOK_MS = 2000;
const JOBS = 50;
const KEY = "umbra-key";
const byId = (id) => document.getElementById(id);

class Refused extends Error {}

async function read(path) {
  const answer = await fetch(path, {
    headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` },
    cache: "no-store",
  });
  const told = await answer.json();
  if (answer.status === 401 || answer.status === 403) throw new Refused(told.detail);
  if (!answer.ok) throw new Error(told.detail);
  return told;
}

function row(...cells) {
  const line = document.createElement("tr");
  for (const cell of cells) {
    const place = document.createElement("td");
    place.append(cell ?? "–");
    line.append(place);
  }
  return line;
}

function fill(id, rows, columns, empty) {
  if (rows.length === 0) {
    const line = row(empty);
    line.firstChild.colSpan = columns;
    line.className = "empty";
    rows = [line];
  }
  byId(id).replaceChildren(...rows);
}

function age(time) {
  if (time === null) return null;
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  return seconds < 60 ? `${seconds.toFixed(0)} s` : `${(seconds / 60).toFixed(0)} min`;
}

function memory(devices) {
  const cell = document.createElement("span");
  for (const device of devices) {
    for (const sort of ["vram", "ram"]) {
      const total = device[`${sort}_total_mb`];
      const free = device[`${sort}_free_mb`];
      if (total === null || free === null || total === 0) continue;
      const meter = document.createElement("meter");
      meter.max = total;
      meter.value = total - free;
      const gb = (mb) => (mb / 1024).toFixed(1);
      const told = `${device.label} ${sort.toUpperCase()}: ${gb(total - free)} of ${gb(total)} GB`;
      meter.setAttribute("aria-label", told);
      cell.append(meter, ` ${told}`, document.createElement("br"));
    }
  }
  return cell;
}

async function look() {
  const [nodes, queue, jobs] = await Promise.all([
    read("/v1/nodes?limit=200"),
    read("/v1/queue"),
    read(`/v1/jobs?limit=${JOBS}`),
  ]);
  fill("fleet", nodes.nodes.map((n) => row(
    n.name, n.status, `${n.running_jobs} of ${n.max_jobs}`, memory(n.devices),
    age(n.last_heartbeat_at),
  )), 5, "No node yet: umbra-compute node add NAME.");
  byId("totals").textContent =
    `${queue.queued} waiting, ${queue.scheduled} later, ${queue.blocked} blocked, ` +
    `${queue.running} running`;
  fill("queue", queue.classes.map((c) => row(
    c.kind, JSON.stringify(c.requires), c.queued, c.scheduled, c.running,
    c.oldest_queued_s === null ? null : `${c.oldest_queued_s.toFixed(0)} s`,
  )), 6, "Nothing waits and nothing runs.");
  fill("jobs", jobs.jobs.map((j) => row(
    j.id, j.kind, j.status, `${j.attempt} of ${j.max_attempts}`,
    j.placement === null ? null : j.placement.node_name, j.error,
  )), 6, "No job yet: umbra-compute job submit KIND.");
}

let timer = 0;

async function turn() {
  clearTimeout(timer);
  const signedIn = sessionStorage.getItem(KEY) !== null;
  byId("sign-in").hidden = signedIn;
  byId("signed-in").hidden = !signedIn;
  byId("sign-out").hidden = !signedIn;
  if (!signedIn) return;
  try {
    await look();
    byId("trouble").textContent = "";
  } catch (error) {
    byId("trouble").textContent = error.message;
    if (error instanceof Refused) {
      sessionStorage.removeItem(KEY);
      return turn();
    }
  }
  timer = setTimeout(turn, LOOK_MS);
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, byId("key").value.trim());
  byId("key").value = "";
  turn();
});
byId("sign-out").addEventListener("click", () => {
  sessionStorage.removeItem(KEY);
  turn();
});
turn();
