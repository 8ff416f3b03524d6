// The researcher's page: estimated counts with intervals, crossed questions, SQL, export. The token stays in this tab.

const at = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const shares = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
const AGAIN = 5000;
let token = sessionStorage.getItem("deniable token") ?? "";
let survey = null;

function made(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function drawn(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

async function asked(path, options = {}) {
  const answer = await fetch(path, {
    ...options, cache: "no-store", headers: { ...options.headers, Authorization: `Bearer ${token}` },
  });
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  const problem = new Error(told.error ?? `The server answered ${answer.status}.`);
  problem.status = answer.status;
  throw problem;
}

function labelOf(column, value) {
  const question = survey.questions.find((one) => one.columns.some((own) => own.name === column));
  const choice = question.kind === "choice" ? question.choices.find((one) => one.value === value) : null;
  return choice ? choice.label[survey.languages[0]] : value;
}

function titleOf(column) {
  const question = survey.questions.find((one) => one.columns.some((own) => own.name === column));
  const own = question.columns.find((one) => one.name === column);
  const words = question.text[survey.languages[0]];
  return own.option === null ? words : `${words} ${question.choices.find((one) => one.value === own.option).label[survey.languages[0]]}`;
}

// -- charts ------------------------------------------------------------------------------------------------------------

function bar(one, most) {
  const x = (count) => Math.max(0, Math.min(100, (100 * count) / most));
  return drawn(
    "svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { x: 0, y: 4, width: x(one.count), height: 12 }),
    drawn("path", { d: `M${x(one.low)} 10 H${x(one.high)} M${x(one.low)} 5 V15 M${x(one.high)} 5 V15` }),
  );
}

// Rounded outwards, so that the interval that is read covers what the one that was computed covers; nothing for a count.
function ends(one) {
  const [low, high] = [Math.max(0, Math.floor(one.low)), Math.ceil(one.high)];
  return one.low === one.high ? [] : [made("small", {}, `${whole.format(low)} to ${whole.format(high)}`)];
}

function chart(column, rows) {
  const most = Math.max(1, ...column.bars.map((one) => one.high));
  const body = column.bars.map((one) =>
    made("tr", {}, made("th", { scope: "row" }, labelOf(column.column, one.label)),
      made("td", {}, whole.format(Math.max(0, one.count)), ...ends(one)),
      made("td", {}, shares.format(Math.max(0, one.count) / rows)),
      made("td", { class: "drawn" }, bar(one, most))),
  );
  const head = made("tr", {}, ...["Answer", "Respondents", "Share", "Chart"].map((name) => made("th", { scope: "col" }, name)));
  const table = made("table", { class: "bars" }, made("thead", {}, head), made("tbody", {}, ...body));
  const { more, error } = column.needed_for;
  const precise = column.public
    ? "Public: counted as it is."
    : `Precise to ±${shares.format(column.precise_to)}. ${more ? `About ${whole.format(more)} more respondents make it ±${shares.format(error)}.` : `That is better than ±${shares.format(error)} for any answer.`}`;
  const heading = made("h2", { id: `c-${column.column}` }, titleOf(column.column));
  const scroll = made("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": heading.id }, table);
  return made("div", { "data-column": column.column }, heading, made("p", { class: "badge" }, precise), scroll);
}

function tableOf(columns, rows) {
  const head = made("tr", {}, ...columns.map((name) => made("th", { scope: "col" }, name)));
  const body = rows.map((row) => made("tr", {}, ...row.map((cell) => made("td", {}, typeof cell === "number" ? new Intl.NumberFormat("en", { maximumFractionDigits: 2 }).format(cell) : cell ?? ""))));
  return made("table", {}, made("thead", {}, head), made("tbody", {}, ...body));
}

// -- what is shown -----------------------------------------------------------------------------------------------------

async function refresh() {
  const progress = await (await asked("progress")).json();
  const facts = [[whole.format(progress.responses), "responses"]];
  if (progress.codes) facts.push([`${progress.codes.used} of ${progress.codes.made}`, "one-time codes used"]);
  facts.push([survey.epsilon.toFixed(2), "epsilon of a whole sheet"]);
  at("facts").replaceChildren(...facts.map(([number, words]) => made("li", {}, made("b", {}, number), words)));
  if (!progress.responses) {
    at("columns").replaceChildren(made("p", {}, "There are no responses yet."));
    return;
  }
  const results = await (await asked("results")).json();
  at("columns").replaceChildren(...results.columns.map((column) => chart(column, results.responses)));
}

async function cross(event) {
  event.preventDefault();
  const [one, other] = [at("one").value, at("other").value];
  await told(async () => {
    const table = await (await asked(`results/cross?one=${encodeURIComponent(one)}&other=${encodeURIComponent(other)}`)).json();
    const head = made("tr", {}, made("th", { scope: "col" }, `${one} / ${other}`), ...table.columns.map((value) => made("th", { scope: "col" }, labelOf(other, value))));
    const body = table.cells.map((cells, place) =>
      made("tr", {}, made("th", { scope: "row" }, labelOf(one, table.rows[place])), ...cells.map((cell) =>
        made("td", {}, whole.format(Math.max(0, cell.count)), ...ends(cell)))));
    at("cross-table").replaceChildren(made("table", {}, made("thead", {}, head), made("tbody", {}, ...body)));
  });
}

async function ask(event) {
  event.preventDefault();
  await told(async () => {
    const body = JSON.stringify({ sql: at("sql").value });
    const answer = await (await asked("questions", { method: "POST", body, headers: { "Content-Type": "application/json" } })).json();
    at("answer").replaceChildren(...answer.warnings.map((words) => made("p", { class: "wrong" }, words)), tableOf(answer.columns, answer.rows));
  });
}

async function download() {
  await told(async () => {
    const file = await (await asked("export")).blob();
    const link = made("a", { href: URL.createObjectURL(file), download: `${survey.name}.zip` });
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

async function told(action) {
  at("alarm").hidden = true;
  try {
    await action();
  } catch (problem) {
    at("alarm").textContent = problem.message;
    at("alarm").hidden = false;
    return problem;
  }
  return null;
}

async function open() {
  survey = await (await fetch("survey")).json();
  document.title = at("title").textContent = `Results: ${survey.title[survey.languages[0]]}`;
  const problem = await told(refresh);
  if (problem?.status === 401 || problem?.status === 403) {
    sessionStorage.removeItem("deniable token");
    at("login").hidden = false;
    return;
  }
  sessionStorage.setItem("deniable token", token);
  at("login").hidden = true;
  at("results").hidden = false;
  const names = survey.questions.flatMap((question) => question.columns.map((column) => column.name));
  for (const [id, chosen] of [["one", 0], ["other", 1]]) {
    at(id).replaceChildren(...names.map((name) => made("option", { value: name }, name)));
    at(id).selectedIndex = Math.min(chosen, names.length - 1);
  }
  at("sql").value ||= `SELECT ${names.at(-1)}, COUNT(*) AS n FROM release GROUP BY ${names.at(-1)}`;
  setInterval(() => { if (!document.hidden) told(refresh); }, AGAIN);
}

at("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  at("token").value = "";
  open();
});
at("cross").addEventListener("submit", cross);
at("ask").addEventListener("submit", ask);
at("export").addEventListener("click", download);
if (token) open();
