// The page of ahp inspect. Whatever comes from the wire is hostile: it enters the
// document as text nodes only, and never as markup, attribute names or code.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const words = ["deny", "stop", "ask", "edit", "continue", "allow", "pass", "observed", "answered", "failed", "interrupted", "invalid", "pending"];
  const maxRows = 500;
  const entries = new Map(); // by seq, oldest first
  const about = { backends: [], maxEntries: 2000, path: "/ahp", timeoutMs: 1000, needsToken: false, captureBytes: 0 };
  let chosen = 0, drawn = false, measuring = false;

  // shown makes characters visible that would hide or reorder what is around them.
  const shown = (text) => String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => "\u27e8U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
  // el makes an element with text.
  function el(name, text, className) {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = shown(text);
    if (className) e.className = className;
    return e;
  }
  const tone = (decision) => words.includes(decision) ? "d-" + decision : "d-pending";
  const clock = (at) => {
    const d = new Date(at);
    return d.toLocaleTimeString([], { hour12: false }) + "." + String(d.getMilliseconds()).padStart(3, "0");
  };
  const ms = (n) => n < 10 ? n.toFixed(2) : n.toFixed(0);

  // pretty lays JSON out without reading it: every token stays as it was sent, also
  // where numbers are large or names are repeated.
  function pretty(text) {
    let out = "", depth = 0;
    const line = () => "\n" + "  ".repeat(Math.min(depth, 64));
    for (let i = 0; i < text.length; i++) {
      const c = text[i];
      if (c === '"') {
        let j = i + 1;
        while (j < text.length && text[j] !== '"') j += text[j] === "\\" ? 2 : 1;
        out += text.slice(i, j + 1);
        i = j;
      } else if (c === "{" || c === "[") {
        let j = i + 1;
        while (j < text.length && " \t\r\n".includes(text[j])) j++;
        if (text[j] === "}" || text[j] === "]") { out += c + text[j]; i = j; continue; }
        depth++;
        out += c + line();
      } else if (c === "}" || c === "]") {
        depth = Math.max(0, depth - 1);
        out += line() + c;
      } else if (c === ",") out += c + line();
      else if (c === ":") out += ": ";
      else if (!" \t\r\n".includes(c)) out += c;
    }
    return out;
  }
  function message(into, title, m) {
    if (!m || !m.bytes) return;
    into.append(el("h3", title + " — " + m.bytes + " bytes" + (m.bytes > about.captureBytes ? ", cut" : "")));
    const first = m.text.trimStart()[0];
    into.append(el("pre", first === "{" || first === "[" ? pretty(m.text) : m.text));
  }

  // Filters.
  function search(e) {
    return [e.type, e.id, e.source, e.session, e.turn, e.call, e.subject, e.decision, e.problem, e.method, ...e.effects,
      ...e.asked.flatMap((a) => [a.backend, a.decision, a.failure ? a.failure.class + " " + a.failure.detail : "", ...(a.effects || [])])].join("\n").toLowerCase();
  }
  // The options' values stay outside the document, so that a session may have any name.
  const values = { "f-session": [], "f-type": [], "f-backend": [], "f-decision": [] };
  const chosenOption = (id) => $(id).selectedIndex > 0 ? values[id][$(id).selectedIndex - 1] : null;
  function matcher(but) {
    const text = $("f-text").value.trim().toLowerCase();
    const session = but === "session" ? null : chosenOption("f-session"), type = chosenOption("f-type");
    const backend = chosenOption("f-backend"), decision = chosenOption("f-decision"), asked = $("f-asked").checked;
    return (e) => !(asked && e.decision === "observed") && (session === null || lane(e) === session) && (type === null || kind(e) === type) &&
      (backend === null || e.asked.some((a) => a.backend === backend)) &&
      (decision === null || e.decision === decision || e.asked.some((a) => a.decision === decision)) &&
      (!text || search(e).includes(text));
  }
  const lane = (e) => e.session || "(no session)";
  const kind = (e) => e.type || e.method || "(not a message)";
  function options(id, all, found) {
    const select = $(id), was = chosenOption(id);
    const list = [...new Set(found)].sort();
    if (was !== null && !list.includes(was)) list.push(was);
    if (select.options.length === list.length + 1 && list.every((v, i) => values[id][i] === v)) return;
    values[id] = list;
    select.replaceChildren(...[all, ...list].map((v) => el("option", v)));
    select.selectedIndex = was === null ? 0 : list.indexOf(was) + 1;
  }
  function choose(id, value) {
    $(id).selectedIndex = values[id].indexOf(value) + 1;
    draw();
  }

  // The three views.
  function drawRows(list) {
    const rows = list.slice(-maxRows).reverse().map((e) => {
      const tr = el("tr", undefined, e.seq === chosen ? "chosen" : "");
      tr.tabIndex = 0;
      tr.append(el("td", clock(e.at)), el("td", e.decision, "word " + tone(e.decision)), el("td", kind(e)),
        el("td", e.problem && !e.subject ? e.problem : e.subject, "about"), el("td", ms(e.milliseconds), "n"), el("td", e.session));
      tr.addEventListener("click", () => open(e.seq));
      tr.addEventListener("keydown", (ev) => { if (ev.key === "Enter") open(e.seq); });
      return tr;
    });
    $("rows").replaceChildren(...rows);
    $("count").textContent = list.length + " of " + entries.size + " events" + (list.length > maxRows ? ", the latest " + maxRows + " listed" : "");
  }
  function drawTimeline(list) {
    const lanes = new Map();
    for (const e of list) {
      if (!lanes.has(lane(e))) lanes.set(lane(e), []);
      lanes.get(lane(e)).push(e);
    }
    const pressed = chosenOption("f-session");
    const out = [...lanes].slice(-30).map(([name, all]) => {
      const span = Math.max(1, all[all.length - 1].at - all[0].at), from = all[0].at;
      const row = el("div", undefined, "lane"), label = el("button", name);
      label.title = shown(name);
      label.type = "button";
      label.setAttribute("aria-pressed", String(pressed === name));
      label.addEventListener("click", () => choose("f-session", pressed === name ? null : name));
      const track = el("div", undefined, "track");
      for (const e of all.slice(-300)) {
        const dot = el("button", undefined, "dot " + tone(e.decision) + (e.seq === chosen ? " chosen" : ""));
        dot.type = "button";
        dot.title = shown(clock(e.at) + " " + kind(e) + ": " + e.decision + "\n" + e.subject);
        dot.style.left = 100 * (e.at - from) / span + "%";
        dot.addEventListener("click", () => open(e.seq));
        track.append(dot);
      }
      row.append(label, track, el("span", all.length + (all.length > 1 ? " in " + (span < 10000 ? span + " ms" : Math.round(span / 1000) + " s") : ""), "faint"));
      return row;
    });
    $("timeline").replaceChildren(...out);
  }
  function drawEmpty() {
    $("empty").hidden = entries.size > 0;
    if (entries.size > 0) return;
    $("empty-text").textContent = "No events yet. Put this into the registration of a harness, first in its list of hooks:";
    const sub = (mode) => ({ events: ["*"], mode, content: { default: "body" } });
    const hook = { id: "local.ahp.inspect", transport: { type: "http", url: location.origin + about.path },
      subscriptions: [{ ...sub("intercept"), timeoutMs: about.timeoutMs, failurePolicy: about.backends.length ? "fail-closed" : "fail-open" }, sub("observe")] };
    if (about.needsToken) hook.authentication = { type: "bearer", tokenEnv: "NAME_OF_THE_VARIABLE" };
    $("snippet").hidden = false;
    $("snippet").textContent = JSON.stringify({ protocolVersion: "draft", hooks: [hook] }, null, 2);
  }
  function draw() {
    drawn = false;
    const all = [...entries.values()];
    options("f-session", "every session", all.map(lane));
    options("f-type", "every event", all.map(kind));
    options("f-backend", "every backend", [...about.backends, ...all.flatMap((e) => e.asked.map((a) => a.backend))]);
    options("f-decision", "every decision", all.flatMap((e) => [e.decision, ...e.asked.map((a) => a.decision)]));
    drawRows(all.filter(matcher()));
    drawTimeline(all.filter(matcher("session")));
    drawEmpty();
  }
  function later() {
    if (drawn) return;
    drawn = true;
    setTimeout(() => { draw(); measureSoon(); }, 100);
  }

  // One entry, with its messages.
  function facts(into, pairs) {
    const dl = el("dl");
    for (const [k, v] of pairs) if (v) dl.append(el("dt", k), el("dd", v));
    into.append(dl);
  }
  async function get(path) {
    const r = await fetch(path, { headers: { Accept: "application/json" } });
    if (!r.ok) throw new Error(await r.text());
    return r.json();
  }
  async function open(seq) {
    chosen = seq;
    draw();
    const box = $("detail");
    let e;
    try { e = await get("entry/" + seq); } catch (err) {
      if (chosen === seq) box.replaceChildren(el("p", String(err.message)));
      return;
    }
    if (chosen !== seq) return;
    const out = el("div"), head = el("h2");
    head.append(el("span", e.decision, "word " + tone(e.decision)), document.createTextNode(" · " + shown(kind(e)) + " · #" + e.seq + (e.recorded ? " · from a file" : "")));
    out.append(head);
    facts(out, [["about", e.subject], ["problem", e.problem], ["effects", e.effects.join(", ")], ["event id", e.id], ["source", e.source], ["session", e.session],
      ["turn", e.turn], ["call", e.call], ["took", ms(e.milliseconds) + " ms"]]);
    message(out, "Harness asked", e.request);
    const longest = Math.max(1, ...e.asked.map((a) => a.milliseconds));
    for (const a of e.asked) {
      const h = el("h3");
      h.append(el("span", a.decision, "word " + tone(a.decision)), document.createTextNode(" · " + shown(a.backend) + ", subscription " + a.subscription + " · " + ms(a.milliseconds) + " ms"));
      const bar = el("div", undefined, "bar " + tone(a.decision));
      bar.style.width = 100 * a.milliseconds / longest + "%";
      out.append(h, bar);
      facts(out, [["effects", (a.effects || []).join(", ")], ["failure", a.failure ? a.failure.class + ": " + a.failure.detail : ""], ["policy", a.policy],
        ["sent", a.sent > 1 ? a.sent + " times" : ""]]);
      message(out, (a.method === "hooks/observe" ? "Told " : "Asked ") + a.backend, a.request);
      message(out, "Answer of " + a.backend, a.reply);
    }
    message(out, "Answer to the harness", e.reply);
    box.replaceChildren(out);
  }
  function measureSoon() {
    if (measuring || !about.backends.length) return;
    measuring = true;
    setTimeout(() => { measuring = false; measure(); }, 500);
  }
  async function measure() {
    let list;
    try { list = await get("latency"); } catch { return; }
    $("latency").replaceChildren(...list.map((l) => {
      const tr = el("tr");
      tr.append(el("td", l.backend), ...[l.count, l.failed].map((n) => el("td", String(n), "n")), ...[l.median, l.p95, l.max].map((n) => el("td", ms(n), "n")));
      return tr;
    }));
  }

  // What comes.
  function put(e) {
    entries.set(e.seq, e);
    while (entries.size > about.maxEntries) entries.delete(entries.keys().next().value);
    if (e.seq === chosen && e.decision !== "pending") open(e.seq); else later();
  }
  function state(text, className) {
    $("state").textContent = text;
    $("state").className = className;
  }
  async function start() {
    try { Object.assign(about, await get("about")); } catch { state("ahp inspect doesn't answer", "lost"); return; }
    $("mode").textContent = about.backends.length ? "in front of " + about.backends.join(", ") : "no backend behind: it has no effect";
    $("latency-box").hidden = !about.backends.length;
    draw();
    const source = new EventSource("updates");
    source.addEventListener("open", () => state("live", "live"));
    source.addEventListener("entry", (ev) => put(JSON.parse(ev.data)));
    source.addEventListener("current", () => { draw(); measure(); });
    source.addEventListener("error", () => state(source.readyState === EventSource.CLOSED ? "ended: reload the page" : "reconnecting…", "lost"));
  }
  $("filters").addEventListener("submit", (ev) => ev.preventDefault());
  $("filters").addEventListener("reset", () => setTimeout(draw));
  $("filters").addEventListener("input", draw);
  start();
})();
