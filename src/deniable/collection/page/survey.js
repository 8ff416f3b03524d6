// The survey page: it checks the survey before it asks, shows what will be sent, sends that, and keeps it until it arrived.

import { certify, codeOfAnswer, fingerprintOf, newKey, NO_ANSWER, perturb, responseId } from "./perturb.js";
import { wordsOf } from "./words.js";

const at = (id) => document.getElementById(id);
const page = { survey: null, fingerprint: "", certificate: null, language: "en", say: wordsOf("en"), row: null, code: null };

// -- what this device remembers: a key while answering, then only what was sent; never an answer -----------------------

const place = () => `deniable ${page.fingerprint}`;
const HERE = "deniable survey here";
const AGAIN = 15_000; // milliseconds until what could not be sent is sent again

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(place())) ?? {};
  } catch {
    return {};
  }
}

function remember(state) {
  try {
    localStorage.setItem(place(), JSON.stringify(state));
  } catch {
    page.forgetful = true; // private windows may forbid it: the draw then lasts as long as the page
  }
}

function keyOfDevice() {
  const state = remembered();
  if (!page.key) page.key = state.key ? Uint8Array.from(state.key.match(/../g), (pair) => parseInt(pair, 16)) : newKey();
  if (!state.key) remember({ key: Array.from(page.key, (byte) => byte.toString(16).padStart(2, "0")).join("") });
  return page.key;
}

// -- elements ----------------------------------------------------------------------------------------------------------

function made(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false && value !== null) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

function drawing(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const percent = (share) => `${new Intl.NumberFormat(page.language, { maximumFractionDigits: 1 }).format(100 * share)} %`;
const text = (texts) => texts[page.language] ?? Object.values(texts)[0];

function labelOf(question, value) {
  if (value === null || value === NO_ANSWER) return page.say("none");
  const choice = question.choices.find((one) => one.value === value);
  return choice && question.kind === "choice" ? text(choice.label) : String(value);
}

// -- how an answer is changed, in words and as a small picture ---------------------------------------------------------

function keptShare(channel) {
  return channel.kind === "line-up" ? channel.truth / 2 ** 32 : channel.keep / 2 ** 32;
}

function after(epsilon) {
  const odds = Math.exp(epsilon) / 9; // of a belief of 10 %
  return percent(odds / (1 + odds));
}

function coinPicture(channel) {
  const kept = keptShare(channel);
  const [yes, no] = channel.kind === "line-up" ? ["around", "blind"] : ["kept", "drawn"];
  const width = 396 * kept;
  return drawing(
    "svg", { class: "coin", viewBox: "0 0 400 92", role: "img", "aria-label": `${percent(kept)}: ${page.say(yes)}; ${percent(1 - kept)}: ${page.say(no)}` },
    drawing("circle", { cx: 200, cy: 16, r: 12, class: "line" }),
    drawing("path", { d: `M200 28 L${2 + width / 2} 44 M200 28 L${2 + width + (396 - width) / 2} 44`, class: "line" }),
    drawing("rect", { x: 2, y: 46, width, height: 14, class: "kept" }),
    drawing("rect", { x: 2 + width, y: 46, width: 396 - width, height: 14, class: "other" }),
    drawing("text", { x: 2, y: 82 }, `${percent(kept)} ${page.say(yes)}`),
    drawing("text", { x: 398, y: 82, "text-anchor": "end" }, `${percent(1 - kept)} ${page.say(no)}`),
  );
}

function explained(column) {
  const channel = column.channel;
  const kept = percent(keptShare(channel));
  const words = channel.kind === "line-up"
    ? page.say("lineup", { size: channel.size, kept })
    : page.say("coin", { points: channel.points, kept });
  const belief = page.say("belief", { after: after(page.certificate.epsilons[column.name]) });
  return made("details", {}, made("summary", {}, page.say("private")), made("p", {}, words), coinPicture(channel), made("p", {}, belief));
}

// -- the form ----------------------------------------------------------------------------------------------------------

function choiceInputs(question) {
  const several = question.kind === "several";
  const values = question.choices.map((choice) => [choice.value, text(choice.label)]);
  if (question.optional && !several) values.push([NO_ANSWER, page.say("none")]);
  return values.map(([value, label], number) => {
    const id = `${question.name}-${number}`;
    const input = made("input", { type: several ? "checkbox" : "radio", id, name: question.name, value });
    return made("div", { class: "choice" }, input, made("label", { for: id }, label));
  });
}

function rangeInputs(question) {
  const { kind, low, high, step } = question.range;
  const id = `${question.name}-0`;
  const input = made("input", {
    type: kind === "date" ? "date" : "number", id, name: question.name, min: low, max: high,
    step: kind === "number" ? "any" : kind === "integer" ? 1 : null, inputmode: kind === "date" ? null : "decimal",
  });
  const words = page.say(kind === "date" ? "date" : "number", { low, high });
  const rounded = step === 1 || kind === "date" ? "" : ` ${page.say("rounded", { step })}`;
  const inputs = [made("p", {}, made("label", { for: id }, words + rounded)), input];
  if (question.optional) {
    const none = `${question.name}-none`;
    inputs.push(made("div", { class: "choice" }, made("input", { type: "checkbox", id: none, name: question.name, value: NO_ANSWER }), made("label", { for: none }, page.say("none"))));
  }
  return inputs;
}

function fieldOf(question) {
  const wrong = made("p", { class: "wrong", id: `${question.name}-wrong` });
  const badge = question.public
    ? made("p", { class: "badge public" }, page.say("public"))
    : explained(question.columns[0]);
  const inputs = question.range ? rangeInputs(question) : choiceInputs(question);
  return made("fieldset", { id: `field-${question.name}`, "aria-describedby": wrong.id }, made("legend", {}, text(question.text)), ...inputs, badge, wrong);
}

function codeField() {
  const wrong = made("p", { class: "wrong", id: "code-wrong" });
  const input = made("input", { type: "text", id: "code", autocapitalize: "characters", spellcheck: "false", "aria-describedby": "code-wrong" });
  return made("p", {}, made("label", { for: "code" }, page.say("code")), made("br"), input, wrong);
}

function answerOf(question) {
  const inputs = [...at("form").querySelectorAll(`[name="${CSS.escape(question.name)}"]`)];
  if (question.kind === "several") return inputs.filter((input) => input.checked).map((input) => input.value);
  if (question.kind === "choice") {
    const chosen = inputs.find((input) => input.checked);
    if (!chosen) return undefined;
    return chosen.value === NO_ANSWER ? null : chosen.value;
  }
  if (inputs[1]?.checked) return null;
  const { kind, low, high } = question.range;
  const value = kind === "date" ? inputs[0].value : inputs[0].valueAsNumber;
  const given = kind === "date" ? value !== "" : Number.isFinite(value);
  return given && low <= value && value <= high ? value : undefined;
}

function allAnswers() {
  const answers = {};
  let first = null;
  for (const question of page.survey.questions) {
    const answer = answerOf(question);
    const wrong = at(`${question.name}-wrong`);
    const field = at(`field-${question.name}`);
    wrong.textContent = "";
    if (answer !== undefined) {
      answers[question.name] = answer;
      continue;
    }
    wrong.textContent = question.range
      ? page.say(question.range.kind === "date" ? "date" : "number", question.range)
      : page.say("choose");
    first ??= field.querySelector("input");
  }
  if (page.survey.codes) {
    page.code = at("code").value.trim().toUpperCase();
    const right = /^[A-Z2-7]{4}(-[A-Z2-7]{4}){3}$/.test(page.code);
    at("code-wrong").textContent = right ? "" : page.say("codeWrong");
    if (!right) first ??= at("code");
  }
  if (first) {
    at("status").textContent = page.say("missing");
    first.focus();
    return null;
  }
  return answers;
}

// -- preview and sending -----------------------------------------------------------------------------------------------

function listed(list, row, past = "") {
  list.replaceChildren();
  for (const question of page.survey.questions) {
    for (const column of question.columns) {
      const sent = row[column.name];
      const option = column.option === null ? "" : `: ${text(question.choices.find((one) => one.value === column.option).label)}`;
      const how = !column.channel ? page.say("asItIs") : Array.isArray(sent) ? page.say(`oneOf${past}`, { size: sent.length }) : page.say(`oneValue${past}`);
      const shown = Array.isArray(sent)
        ? sent.map((value) => labelOf(question, value)).join(" · ")
        : column.option === null ? labelOf(question, sent) : page.say(sent);
      list.append(made("dt", {}, text(question.text) + option), made("dd", { "data-column": column.name }, made("small", {}, how), shown));
    }
  }
}

function show(name) {
  for (const section of ["ask", "preview", "done"]) at(section).hidden = section !== name;
  at("status").textContent = "";
  if (name !== "ask") at(`${name}-title`).focus();
}

// Whether another tab has sent meanwhile: a second response would be a second look at the same answers.
function sentElsewhere() {
  const state = remembered();
  if (page.state || !state.id) return false;
  page.state = state;
  page.key = page.row = null;
  at("form").reset();
  listed(at("done-list"), state.answers, state.sent ? "Sent" : "");
  at("done-words").textContent = page.say(state.sent ? "doneWords" : "waiting");
  show("done");
  return true;
}

function review(event) {
  event.preventDefault();
  if (sentElsewhere()) return;
  const answers = allAnswers();
  if (!answers) return;
  for (const question of page.survey.questions) {
    for (const column of question.columns) {
      if (column.channel && codeOfAnswer(question, column, answers[question.name] ?? null) < 0) return;
    }
  }
  page.row = perturb(page.survey, page.fingerprint, answers, keyOfDevice());
  listed(at("preview-list"), page.row);
  show("preview");
}

async function post(state) {
  const body = { survey: page.fingerprint, id: state.id, answers: state.answers };
  if (state.code) body.code = state.code;
  return fetch("responses", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), credentials: "omit", cache: "no-store",
  });
}

async function deliver() {
  const state = remembered().id ? remembered() : page.state;
  if (!state?.id) return;
  let words = page.say("waiting");
  let settled = true;
  clearTimeout(page.again);
  try {
    const answer = await post(state);
    const told = await answer.json().catch(() => ({}));
    if (answer.ok) {
      page.state = { id: state.id, answers: state.answers, code: state.code, sent: true };
      remember(page.state);
      listed(at("done-list"), state.answers, "Sent");
      words = page.say("doneWords") + (told.new === false ? ` ${page.say("known")}` : "");
    } else if (answer.status < 500 && answer.status !== 429 && answer.status !== 408) {
      words = page.say("refused") + (told.error ?? answer.status);
      if (!state.sent) forget();
    } else {
      settled = false;
    }
  } catch {
    settled = false; // no network: what is to be sent stays here, and is sent when there is one
  }
  // A browser does not always say when it is online again, and never when a server is back.
  if (!settled) page.again = setTimeout(deliver, AGAIN);
  at("done-words").textContent = words;
}

function forget() {
  page.state = null;
  remember(page.key ? { key: Array.from(page.key, (byte) => byte.toString(16).padStart(2, "0")).join("") } : {});
}

async function send() {
  if (sentElsewhere()) return;
  at("send").disabled = true;
  at("status").textContent = page.say("sending");
  // From here on the key is gone: only what is sent is kept, and sending it again gives nothing new.
  page.state = { id: responseId(keyOfDevice(), page.fingerprint), answers: page.row, code: page.code, sent: false };
  remember(page.state);
  at("form").reset();
  listed(at("done-list"), page.row);
  at("done-words").textContent = "";
  show("done");
  await deliver();
  at("send").disabled = false;
}

// -- start -------------------------------------------------------------------------------------------------------------

function alarm(words) {
  at("alarm").textContent = page.say("alarm") + words;
  at("alarm").hidden = false;
  at("status").textContent = "";
  for (const section of ["ask", "preview", "done"]) at(section).hidden = true;
}

// Whether this is the survey that was promised: by the invitation, or else by what was seen here before.
function trusted() {
  const invited = /^#([0-9a-f]{40})$/.exec(location.hash)?.[1];
  if (invited && invited !== page.fingerprint) return page.say("tampered");
  if (location.hash.length > 1 && !invited) return page.say("tampered");
  let before = null;
  try {
    before = localStorage.getItem(HERE);
    if (!before || invited) localStorage.setItem(HERE, page.fingerprint);
  } catch {
    return null;
  }
  return !invited && before && before !== page.fingerprint ? page.say("changed") : null;
}

function speak(language) {
  page.language = language;
  page.say = wordsOf(language);
  document.documentElement.lang = language;
  document.title = at("title").textContent = text(page.survey.title);
  at("consent").textContent = text(page.survey.consent);
  const words = { "language-label": "language", "how-summary": "how", "preview-title": "preview", "preview-words": "previewWords", send: "send", change: "change", "done-title": "done", again: "again" };
  for (const [id, name] of Object.entries(words)) at(id).textContent = page.say(name);
  at("how-words").replaceChildren(made("p", {}, page.say("howWords")));
  at("foot").textContent = page.say("foot") + page.fingerprint;
  const fields = page.survey.questions.map(fieldOf);
  if (page.survey.codes) fields.push(codeField());
  const promise = made("p", { id: "promise" }, page.say("sheet", { after: after(page.certificate.epsilon) }));
  at("form").replaceChildren(promise, ...fields, made("div", { class: "actions" }, made("button", { type: "submit", id: "review" }, page.say("review"))));
}

function preferred() {
  const known = page.survey.languages;
  for (const wanted of navigator.languages ?? []) {
    const match = known.find((code) => code === wanted || code === wanted.split("-")[0]);
    if (match) return match;
  }
  return known[0];
}

async function start() {
  at("status").textContent = page.say("loading");
  let document_;
  try {
    const answer = await fetch("survey", { credentials: "omit" });
    if (!answer.ok) throw new Error(String(answer.status));
    document_ = await answer.text();
  } catch {
    at("status").textContent = page.say("offline");
    return;
  }
  page.fingerprint = fingerprintOf(document_);
  page.survey = JSON.parse(document_);
  const language = preferred();
  page.say = wordsOf(language);
  const doubt = trusted();
  if (doubt) return alarm(doubt);
  page.certificate = certify(page.survey);
  if (page.certificate.problems.length) return alarm(`${page.say("weak")} ${page.certificate.problems.join(" ")}`);
  speak(language);
  const select = at("language");
  const names = (code) => new Intl.DisplayNames([code], { type: "language" }).of(code) ?? code;
  select.append(...page.survey.languages.map((code) => made("option", { value: code, lang: code, selected: code === language }, names(code))));
  at("language-row").hidden = page.survey.languages.length < 2;
  select.addEventListener("change", () => {
    speak(select.value);
    if (page.row) listed(at("preview-list"), page.row);
    if (page.state) listed(at("done-list"), page.state.answers, page.state.sent ? "Sent" : "");
  });
  at("form").addEventListener("submit", review);
  at("send").addEventListener("click", send);
  at("change").addEventListener("click", () => show("ask"));
  at("again").addEventListener("click", deliver);
  window.addEventListener("online", () => { if (!remembered().sent) deliver(); });
  const state = remembered();
  page.state = state.id ? state : null;
  if (!page.state) return show("ask");
  listed(at("done-list"), state.answers, state.sent ? "Sent" : "");
  at("done-words").textContent = page.say("doneWords");
  show("done");
  if (!state.sent) await deliver();
}

if ("serviceWorker" in navigator) navigator.serviceWorker.register("sw.js").catch(() => {});
start();
