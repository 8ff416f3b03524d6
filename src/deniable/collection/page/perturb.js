// The respondent's side: answers are changed at random here, in the same whole numbers as deniable's Python has, and
// nothing else ever leaves. Also the certificate: what a survey's channels really reveal, computed from their integers.

import { hex, shake256, utf8 } from "./keccak.js";

const SCALE = 2n ** 32n;
const COINS = 2 ** 18;
const DRAWS = 2n ** 40n;
const MOST_DECIMALS = 12;
const DAY = 86400000;

export const NO_ANSWER = "no answer";

// -- randomness --------------------------------------------------------------------------------------------------------

export function fingerprintOf(text) {
  return hex(shake256(utf8(text), 20));
}

function keyed(key, text, length) {
  const words = utf8(text);
  const message = new Uint8Array(key.length + words.length);
  message.set(key);
  message.set(words, key.length);
  return shake256(message, length);
}

export function newKey() {
  return crypto.getRandomValues(new Uint8Array(32));
}

export function wordOf(key, fingerprint, column, code) {
  const bytes = keyed(key, `deniable draw\n${fingerprint}\n${column}\n${code}`, 8);
  return bytes.reduceRight((word, byte) => (word << 8n) | BigInt(byte), 0n);
}

export function responseId(key, fingerprint) {
  return hex(keyed(key, `deniable response\n${fingerprint}`, 16));
}

// -- line-ups ----------------------------------------------------------------------------------------------------------

const designs = new WeakMap();

function blocksOf(channel) {
  // The places of each order's block: where the first values of a public order stand, ascending.
  if (designs.has(channel)) return designs.get(channel);
  const blocks = [];
  for (let number = 0; number < channel.orders; number++) {
    const stream = shake256(utf8(`deniable line-ups ${channel.seed} ${number}`), 8 * channel.values);
    const view = new DataView(stream.buffer);
    const rank = Array.from({ length: channel.values }, (_, x) => view.getBigUint64(8 * x, true));
    const order = rank.map((_, x) => x).sort((a, b) => (rank[a] < rank[b] ? -1 : rank[a] > rank[b] ? 1 : a - b));
    blocks.push(order.slice(0, channel.size).sort((a, b) => a - b));
  }
  designs.set(channel, blocks);
  return blocks;
}

function turned(block, shift, values) {
  return block.map((place) => (place + shift) % values).sort((a, b) => a - b);
}

function drawLineUp(channel, code, word) {
  const block = blocksOf(channel)[Number(word >> 58n) >> (6 - Math.log2(channel.orders))];
  const around = Number((word >> 40n) & BigInt(COINS - 1)) < channel.truth / (2 ** 32 / COINS);
  const r = word & (DRAWS - 1n);
  const [place, blind] = [channel.size, channel.values].map((parts) => Number((r * BigInt(parts)) >> 40n));
  const shift = around ? (code - block[place] + channel.values) % channel.values : blind;
  return turned(block, shift, channel.values);
}

// -- one answer --------------------------------------------------------------------------------------------------------

// The perturbed code of an answer; of line-ups the places of the values in its set.
export function draw(channel, code, word) {
  if (channel.kind === "line-up") return drawLineUp(channel, code, word);
  if (word >> 32n < BigInt(channel.keep)) return code;
  return Number(((word & (SCALE - 1n)) * BigInt(channel.points)) >> 32n);
}

function decimalsOf(number) {
  const [digits, exponent] = String(number).toLowerCase().split("e");
  return Math.max(0, (digits.split(".")[1] ?? "").length - Number(exponent ?? 0));
}

function dayNumber(text) {
  const [year, month, day] = text.split("-").map(Number);
  return Date.UTC(year, month - 1, day) / DAY;
}

export function gridOf(range) {
  const [low, high] = range.kind === "date" ? [dayNumber(range.low), dayNumber(range.high)] : [range.low, range.high];
  return Math.floor((high - low) / range.step + 1e-6) + 1;
}

export function codeOf(range, value) {
  const number = range.kind === "date" ? dayNumber(value) - dayNumber(range.low) : value - range.low;
  return Math.min(Math.floor(number / range.step + 0.5), gridOf(range) - 1);
}

export function valueAt(range, place) {
  if (place === gridOf(range)) return null;
  if (range.kind === "date") {
    return new Date((dayNumber(range.low) + place * range.step) * DAY).toISOString().slice(0, 10);
  }
  const number = range.low + place * range.step;
  const decimals = Math.max(decimalsOf(range.low), decimalsOf(range.step));
  return range.kind === "number" && decimals <= MOST_DECIMALS ? Number(number.toFixed(decimals)) : number;
}

export function codeOfAnswer(question, column, answer) {
  if (question.range) return answer === null ? gridOf(question.range) : codeOf(question.range, answer);
  if (column.option !== null) return answer.includes(column.option) ? 0 : 1;
  return column.values.indexOf(answer === null ? NO_ANSWER : answer);
}

export function sentOf(question, column, answer, fingerprint, key) {
  if (!column.channel) {
    if (column.option !== null) return column.values[answer.includes(column.option) ? 0 : 1];
    return question.range && answer !== null ? valueAt(question.range, codeOf(question.range, answer)) : answer;
  }
  const code = codeOfAnswer(question, column, answer);
  if (code < 0) throw new RangeError(`no answer to ${question.name}`);
  const drawn = draw(column.channel, code, wordOf(key, fingerprint, column.name, code));
  if (question.range) return valueAt(question.range, drawn);
  return Array.isArray(drawn) ? drawn.map((place) => column.values[place]) : column.values[drawn];
}

// All that is sent of a sheet: column -> perturbed answer. Answers are by question; null where one is left out.
export function perturb(survey, fingerprint, answers, key) {
  const row = {};
  for (const question of survey.questions) {
    for (const column of question.columns) {
      row[column.name] = sentOf(question, column, answers[question.name] ?? null, fingerprint, key);
    }
  }
  return row;
}

// -- the certificate ---------------------------------------------------------------------------------------------------

function above(fraction, other) {
  return fraction[0] * other[1] > other[0] * fraction[1];
}

function drawsOf(part, parts) {
  // How many of 2^40 draws fall into one of so many parts.
  const before = (number) => (BigInt(number) * DRAWS + BigInt(parts) - 1n) / BigInt(parts);
  return before(part + 1) - before(part);
}

function lineUpGamma(channel) {
  // For every set the draws that lead to it around each member, and those that lead to it without looking.
  const { values, size } = channel;
  const sets = new Map();
  for (const block of blocksOf(channel)) {
    for (let shift = 0; shift < values; shift++) {
      const name = turned(block, shift, values).join();
      const known = sets.get(name) ?? { blind: 0n, draws: new Map() };
      known.blind += drawsOf(shift, values);
      block.forEach((place, number) => {
        const x = (place + shift) % values;
        known.draws.set(x, (known.draws.get(x) ?? 0n) + drawsOf(number, size));
      });
      sets.set(name, known);
    }
  }
  let largest = [0n, 1n];
  for (const { blind, draws } of sets.values()) {
    for (const own of draws.values()) if (above([own, blind], largest)) largest = [own, blind];
  }
  const coin = BigInt(channel.truth / (2 ** 32 / COINS));
  const rest = BigInt(COINS) - coin;
  if (rest <= 0n) return null;
  const under = rest * largest[1];
  return [under + coin * largest[0], under];
}

// The exact amplification of a channel as a fraction of two whole numbers; null where it is unbounded.
export function gammaOf(channel) {
  if (channel.kind === "line-up") return lineUpGamma(channel);
  const keep = BigInt(channel.keep);
  const least = SCALE / BigInt(channel.points);
  if (keep >= SCALE || least === 0n) return null;
  return [keep * SCALE + (SCALE - keep) * least, (SCALE - keep) * least];
}

function isWhole(number, low, high) {
  return Number.isSafeInteger(number) && low <= number && number <= high;
}

function isChannel(channel, size) {
  if (channel.kind === "coin") return isWhole(channel.keep, 0, 2 ** 32) && channel.points === size && size > 1;
  return (
    channel.kind === "line-up" && channel.values === size &&
    isWhole(channel.size, 1, size - 1) &&
    isWhole(channel.truth, 1, 2 ** 32) && channel.truth % 2 ** 14 === 0 &&
    [1, 2, 4, 8, 16, 32, 64].includes(channel.orders) && isWhole(channel.seed, 0, Number.MAX_SAFE_INTEGER)
  );
}

function fractionOf(text) {
  const match = /^(\d+)(?:\/(\d+))?$/.exec(text);
  return match ? [BigInt(match[1]), BigInt(match[2] ?? "1")] : null;
}

function logOf([over, under]) {
  // Of whole numbers far beyond what a double holds.
  const log = (n) => {
    const shift = BigInt(Math.max(0, n.toString(2).length - 60));
    return Math.log(Number(n >> shift)) + Number(shift) * Math.LN2;
  };
  return log(over) - log(under);
}

function checkColumn(question, column, problems) {
  if (question.public !== (column.channel === null)) {
    problems.push(`${column.name}: it is called ${question.public ? "public" : "private"}, and is not.`);
    return [1n, 1n];
  }
  if (column.channel === null) return [1n, 1n];
  const size = question.range ? gridOf(question.range) + Number(question.range.missing) : column.values.length;
  const gamma = isChannel(column.channel, size) ? gammaOf(column.channel) : null;
  if (gamma === null) {
    problems.push(`${column.name}: its noise hides nothing.`);
    return [1n, 1n];
  }
  const stated = fractionOf(String(column.gamma));
  if (stated === null || above(gamma, stated) || logOf(stated) > column.epsilon + 1e-6) {
    problems.push(`${column.name}: there is less noise than the survey says.`);
  }
  return gamma;
}

// Whether a survey's noise is what it says, computed from its integers. No problem, no words.
export function certify(survey) {
  const problems = [];
  if (survey.format !== "deniable-survey" || survey.format_version !== 1) {
    return { problems: ["This page does not know surveys of this format."], epsilon: Infinity, epsilons: {} };
  }
  const epsilons = {};
  let epsilon = 0;
  for (const question of survey.questions) {
    for (const column of question.columns) {
      epsilons[column.name] = logOf(checkColumn(question, column, problems));
      epsilon += epsilons[column.name];
    }
  }
  if (!(epsilon <= survey.epsilon + 1e-6)) problems.push("The whole survey reveals more than it says.");
  return { problems, epsilon, epsilons };
}
