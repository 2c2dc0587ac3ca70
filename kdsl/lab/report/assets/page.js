"use strict";
(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const byId = (id) => document.getElementById(id);
  const ROWS = 100;

  // Every text of results goes in as text: never as markup.
  const make = (name, attributes = {}, ...content) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...content.filter((each) => each !== null && each !== undefined));
    return element;
  };

  // ---- plots ----
  const tip = byId("tip");
  const showTip = (_, event, __, value) => {
    if (value === null || value === undefined || value === "" || typeof value !== "object") {
      tip.hidden = true;
      return;
    }
    const entries = Object.entries(value).filter(([, each]) => each !== null && each !== "null");
    const [first, ...rest] = entries;
    tip.replaceChildren(
      make("strong", {}, String(first[1])),
      ...rest.map(([name, each]) => make("span", {}, name, make("b", {}, String(each)))));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const top = event.clientY + 16 + box.height > window.innerHeight ? event.clientY - box.height - 12 : event.clientY + 16;
    tip.style.left = `${Math.max(left, 8)}px`;
    tip.style.top = `${Math.max(top, 8)}px`;
  };

  const rowsOf = ({ names, rows }) =>
    rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]])));

  const views = new Map();
  const draw = async (figure) => {
    const key = figure.dataset.plot;
    if (views.has(key)) return;
    views.set(key, null);
    const { spec, data } = page.plots[key];
    const place = byId(`plot-${key}`);
    const datasets = Object.fromEntries(Object.entries(data).map(([name, each]) => [name, rowsOf(each)]));
    try {
      const drawn = await window.kdslEmbed(place, { ...spec, datasets }, {
        actions: false, ast: true, config: page.config, defaultStyle: false, mode: "vega-lite",
        renderer: "svg", tooltip: showTip,
      });
      drawn.view.addEventListener("click", (_, item) => {
        const run = item && item.datum && item.datum.run;
        if (run) location.hash = `run-${run}`;
      });
      views.set(key, drawn.view);
    } catch (error) {
      place.replaceChildren(make("p", { class: "failed" }, `This plot could not be drawn: ${error.message}`));
      console.error(error);
    }
  };

  const showTrace = async (trace) => {
    for (const element of document.querySelectorAll("[data-trace]"))
      element.hidden = element.dataset.trace !== String(trace);
    for (const figure of document.querySelectorAll("figure[data-plot]:not([hidden])")) await draw(figure);
    document.documentElement.dataset.drawn = String(trace);
  };

  let resized = 0;
  window.addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => {
      for (const view of views.values()) if (view) view.resize().runAsync();
    }, 120);
  });

  // ---- tables ----
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.sort === undefined ? NaN : Number(cell.dataset.sort);
    return Number.isNaN(number) ? cell.textContent : number;
  };
  const compared = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b
      : typeof a !== typeof b ? (typeof a === "number" ? -1 : 1) : a.localeCompare(b, "en", { numeric: true });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("table.sortable thead button");
    if (!button) return;
    const head = button.closest("th");
    const table = button.closest("table");
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const each of head.parentElement.cells) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => sign * compared(keyOf(a, head.cellIndex), keyOf(b, head.cellIndex)));
    table.tBodies[0].append(...rows);
  });

  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
  byId("find-runs").addEventListener("input", (event) => {
    const wanted = words(event.target.value);
    let found = 0;
    for (const row of byId("runs-table").tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
      found += row.hidden ? 0 : 1;
    }
    byId("found-runs").textContent = wanted.length ? `${found} runs` : "";
  });

  // ---- a run and its decisions ----
  const shellWord = (text) => /^[\w.,:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

  const facts = (pairs) => make("dl", { class: "facts-of-run" },
    ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));

  const decisionPart = (digest, decisions, [place, pod, node, cards, reason]) => {
    const lines = [make("p", {}, make("strong", {}, pod), ` arrived as number ${place + 1}.`)];
    if (node === null) lines.push(make("p", {}, `It has no node: ${reason === null ? "no reason was kept" : decisions.names[reason]}`));
    else lines.push(make("p", {}, `It went to ${decisions.names[node]}${cards ? `, card ${cards.replaceAll(",", ", ")}` : ""}.`));
    if (page.explain)
      lines.push(make("p", {}, "Explained by ", make("code", {}, `${page.explain} ${digest.slice(0, 12)} ${shellWord(pod)}`)));
    return make("div", { class: "decision", id: "decision" }, ...lines);
  };

  const decisionsPart = (digest, decisions) => {
    const input = make("input", { type: "search", placeholder: "pod, node or reason", autocomplete: "off" });
    const status = make("span", { role: "status" });
    const body = make("tbody");
    const more = make("button", { type: "button", class: "more" }, `${ROWS} more`);
    let shown = ROWS;
    const refresh = () => {
      const wanted = words(input.value);
      const named = decisions.names.map((name) => name.toLowerCase());
      const found = decisions.rows.filter(([, pod, node, , reason]) => wanted.every((word) =>
        pod.toLowerCase().includes(word) || (node !== null && named[node].includes(word)) ||
        (reason !== null && named[reason].includes(word))));
      body.replaceChildren(...found.slice(0, shown).map(([place, pod, node, cards, reason]) => make("tr", {},
        make("td", { class: "number", "data-sort": String(place) }, String(place + 1)),
        make("th", { scope: "row" }, make("a", { href: `#run-${digest}/${place}` }, pod)),
        make("td", {}, node === null ? "–" : decisions.names[node]),
        make("td", {}, cards.replaceAll(",", ", ")),
        make("td", { class: "reason" }, reason === null ? "" : decisions.names[reason]))));
      more.hidden = found.length <= shown;
      status.textContent = `${found.length.toLocaleString("en")} of ${decisions.rows.length.toLocaleString("en")} decisions`;
    };
    input.addEventListener("input", () => { shown = ROWS; refresh(); });
    more.addEventListener("click", () => { shown += ROWS; refresh(); });
    refresh();
    const number = (value) => value.toLocaleString("en");
    const total = number(decisions.total);
    const waiting = decisions.rows.filter((row) => row[2] === null).length;
    const about = decisions.rows.length === decisions.total ? `All ${total} decisions, in order of arrival.`
      : `${number(decisions.rows.length)} of ${total} decisions: the first ${number(waiting)} of ` +
        `${number(decisions.pending)} pods without a node, and the first ` +
        `${number(decisions.rows.length - waiting)} with one; in order of arrival.`;
    const heads = ["Number", "Pod", "Node", "Cards", "Reason"].map((name, at) =>
      make("th", { scope: "col", ...(at ? {} : { class: "number" }), "aria-sort": "none" }, make("button", { type: "button" }, name)));
    return [
      make("p", { class: "finder" }, make("label", {}, "Find decisions ", input), status),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Decisions" },
        make("table", { class: "sortable decisions" }, make("caption", {}, about), make("thead", {}, make("tr", {}, ...heads)), body)),
      more,
    ];
  };

  const showRun = (digest, place) => {
    const run = page.runs[digest];
    if (!run) {
      byId("run").replaceChildren(make("p", { class: "note" }, "The page does not hold this run. ",
        make("code", {}, `kdsl.lab.open(…).decisions("${digest.slice(0, 12)}")`), " returns its decisions."));
      byId("run").scrollIntoView({ block: "start" });
      return;
    }
    const values = page.metrics.map(({ title, digits }, at) => [title, run.values[at] === null ? "–"
      : run.values[at].toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })]);
    const decisions = page.decisions[digest];
    const row = decisions && place !== undefined ? decisions.rows.find((each) => each[0] === Number(place)) : undefined;
    byId("run").replaceChildren(
      make("h3", {}, `${run.policy} on ${run.trace}: run `, make("span", { class: "digest" }, digest.slice(0, 12))),
      facts([...values, ...run.settings]),
      row ? decisionPart(digest, decisions, row) : null,
      ...(decisions ? decisionsPart(digest, decisions)
        : [make("p", { class: "note" }, "The page holds the decisions of one run for each policy and trace, and not of this one. ",
          make("code", {}, `kdsl.lab.open(…).decisions("${digest.slice(0, 12)}")`), " returns them.")]));
    (row ? byId("decision") : byId("run")).scrollIntoView({ block: "start" });
    byId("run").focus({ preventScroll: true });
  };

  const follow = () => {
    const match = /^#run-([0-9A-Za-z]+)(?:\/(\d+))?$/.exec(location.hash);
    if (match) showRun(match[1], match[2]);
  };
  window.addEventListener("hashchange", follow);

  const chooser = byId("trace");
  if (chooser) chooser.addEventListener("change", () => showTrace(chooser.value));
  showTrace(chooser ? chooser.value : 0).then(follow);
})();
