// What scripts add to the workbench: answers as they come, progress, and pictures to move in. Every
// page works without it. What is shown was escaped by the server, which writes it as HTML.

const all = (what, inside = document) => [...inside.querySelectorAll(what)];

async function* events(response) {  // server-sent events of a POST (HTML Living Standard, 9.2)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7) ?? "message";
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      if (data.length) yield { name, data: JSON.parse(data.join("\n")) };
    }
  }
}

function live(form) {
  const place = form.parentElement.querySelector("[data-live]");
  place.replaceChildren();
  place.hidden = false;
  place.className = "card answer";
  const status = document.createElement("p");
  status.className = "faint working";
  status.textContent = "Looking for an answer";
  const steps = document.createElement("ol");
  steps.className = "live-steps faint";
  const said = document.createElement("div");
  place.append(said, status, steps);
  return { place, status, steps, said };
}

async function ask(form, event) {
  event.preventDefault();
  const shown = live(form);
  const button = form.querySelector("button.main");
  const leaving = new AbortController();
  const fail = (text) => { shown.status.className = "bad"; shown.status.textContent = text; };
  button.disabled = true;
  addEventListener("pagehide", () => leaving.abort(), { once: true });
  try {
    const response = await fetch(form.action, {
      method: "POST", body: new URLSearchParams(new FormData(form)), signal: leaving.signal,
      headers: { Accept: "text/event-stream" },
    });
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      fail(page.querySelector("main [role=alert]")?.textContent ?? "That did not work.");
      return;
    }
    for await (const { name, data } of events(response)) {
      if (name === "done") { location.assign(data); return; }
      if (name === "failed" || name === "error") {
        shown.said.insertAdjacentHTML("beforeend", name === "failed" ? data : "");
        fail(name === "failed" ? "It failed." : data.detail);
      } else (name === "stage" ? shown.steps : shown.said).insertAdjacentHTML("beforeend", data);
    }
    if (shown.status.classList.contains("working")) fail("The server ended before the answer.");
  } catch (error) {
    if (error.name !== "AbortError") fail("The server can't be reached.");
  } finally {
    button.disabled = false;
  }
}

function upload(form, event) {
  event.preventDefault();
  const bar = form.querySelector("progress");
  const request = new XMLHttpRequest();  // fetch tells nothing of how far an upload is
  bar.hidden = false;
  request.upload.onprogress = (e) => { if (e.lengthComputable) bar.value = (100 * e.loaded) / e.total; };
  request.onload = () => {
    if (request.status < 400) { location.assign(request.responseURL); return; }
    const page = new DOMParser().parseFromString(request.responseText, "text/html");
    const told = document.createElement("p");
    told.className = "bad";
    told.setAttribute("role", "alert");
    told.textContent = page.querySelector("main [role=alert]")?.textContent ?? "That did not work.";
    form.append(told);
    bar.hidden = true;
  };
  request.onerror = () => form.submit();
  request.open("POST", form.action);
  request.send(new FormData(form));
}

function takeDrops(form) {  // files dropped on the form are chosen as if by its button
  const input = form.querySelector("input[type=file]");
  const hover = (event, over) => { event.preventDefault(); form.classList.toggle("over", over); };
  form.addEventListener("dragover", (event) => hover(event, true));
  form.addEventListener("dragleave", (event) => hover(event, false));
  form.addEventListener("drop", (event) => {
    hover(event, false);
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    form.requestSubmit();
  });
}

function follow(card) {
  const source = new EventSource(card.dataset.job);
  source.onmessage = ({ data }) => {
    const job = JSON.parse(data);
    card.querySelector("[data-stage]").textContent = job.stage;
    const status = card.querySelector(".status");
    status.textContent = job.status;
    status.className = `status ${job.status}`;
    const bar = card.querySelector("progress");
    if (bar && job.total) { bar.max = job.total; bar.value = job.done; }
    if (job.ended) { source.close(); location.reload(); }
  };
}

function movable(figure) {
  const svg = figure.querySelector("svg");
  if (!svg) return;
  const whole = svg.viewBox.baseVal;
  const start = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
  let view = { ...start };
  const held = new Map();
  let moved = 0;  // pixels since a pointer went down
  const show = () => svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  const zoom = (factor, at = [0.5, 0.5]) => {
    const width = Math.min(start.width * 1.5, Math.max(start.width / 12, view.width * factor));
    const height = (width * start.height) / start.width;
    view = { x: view.x + (view.width - width) * at[0], y: view.y + (view.height - height) * at[1], width, height };
    show();
  };
  const pan = (x, y) => { view.x += x * view.width; view.y += y * view.height; show(); };
  const fit = () => { view = { ...start }; show(); };
  const tools = document.createElement("div");
  tools.className = "tools";
  for (const [sign, words, act] of [["+", "Larger", () => zoom(0.75)], ["−", "Smaller", () => zoom(1.33)], ["⤢", "All of it", fit]]) {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = sign; button.title = words;
    button.setAttribute("aria-label", words); button.addEventListener("click", act);
    tools.append(button);
  }
  figure.append(tools);
  figure.classList.add("live");
  svg.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    const box = svg.getBoundingClientRect();
    zoom(e.deltaY > 0 ? 1.15 : 0.87, [(e.clientX - box.x) / box.width, (e.clientY - box.y) / box.height]);
  }, { passive: false });
  svg.addEventListener("pointerdown", (e) => { if (!held.size) moved = 0; held.set(e.pointerId, [e.clientX, e.clientY]); });
  svg.addEventListener("click", (e) => { if (moved > 4) e.preventDefault(); }, true);  // it was a drag
  svg.addEventListener("dragstart", (e) => e.preventDefault());
  svg.addEventListener("pointermove", (e) => {
    const before = held.get(e.pointerId);
    if (!before) return;
    moved += Math.hypot(before[0] - e.clientX, before[1] - e.clientY);
    if (moved > 4 && !svg.hasPointerCapture(e.pointerId)) svg.setPointerCapture(e.pointerId);
    const box = svg.getBoundingClientRect();
    const apart = () => { const [a, b] = [...held.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
    const was = held.size === 2 ? apart() : 0;
    held.set(e.pointerId, [e.clientX, e.clientY]);
    if (was) zoom(was / apart());
    else if (e.pointerType !== "touch" || view.width < start.width) pan((before[0] - e.clientX) / box.width, (before[1] - e.clientY) / box.height);
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, (e) => held.delete(e.pointerId));
  const keys = { ArrowLeft: () => pan(-0.1, 0), ArrowRight: () => pan(0.1, 0), ArrowUp: () => pan(0, -0.1), ArrowDown: () => pan(0, 0.1), "+": () => zoom(0.8), "-": () => zoom(1.25), 0: fit };
  figure.addEventListener("keydown", (e) => {
    if (e.target !== figure || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
}

for (const form of all("form[data-ask]")) {
  form.addEventListener("submit", (event) => ask(form, event));
  form.querySelector("textarea").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });
}
for (const form of all("form[data-upload]")) {
  form.addEventListener("submit", (event) => upload(form, event));
  takeDrops(form);
}
for (const form of all("form[data-begin]")) form.requestSubmit();
for (const card of all("[data-job]")) if (card.dataset.job) follow(card);
for (const figure of all("figure[data-picture]")) movable(figure);
