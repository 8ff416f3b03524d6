// SHAKE-256 (FIPS 202), from its definition, on 32-bit halves of the 25 lanes. A page without a secure connection has no
// other hash function, and line-ups are laid in orders that are made of this one.

const RATE = 136;

function rotated(state, lane, by, low, high) {
  // The two halves of a lane, rotated to the left.
  const [l, h] = by < 32 ? [low, high] : [high, low];
  const bits = by % 32;
  state[2 * lane] = bits ? (l << bits) | (h >>> (32 - bits)) : l;
  state[2 * lane + 1] = bits ? (h << bits) | (l >>> (32 - bits)) : h;
}

function theta(state) {
  const columns = new Uint32Array(10);
  for (let x = 0; x < 5; x++) {
    for (let half = 0; half < 2; half++) {
      let sum = 0;
      for (let y = 0; y < 5; y++) sum ^= state[2 * (x + 5 * y) + half];
      columns[2 * x + half] = sum;
    }
  }
  for (let x = 0; x < 5; x++) {
    const [before, after] = [(x + 4) % 5, (x + 1) % 5];
    const low = columns[2 * before] ^ ((columns[2 * after] << 1) | (columns[2 * after + 1] >>> 31));
    const high = columns[2 * before + 1] ^ ((columns[2 * after + 1] << 1) | (columns[2 * after] >>> 31));
    for (let y = 0; y < 5; y++) {
      state[2 * (x + 5 * y)] ^= low;
      state[2 * (x + 5 * y) + 1] ^= high;
    }
  }
}

function rhoAndPi(state) {
  let [x, y] = [1, 0];
  let [low, high] = [state[2], state[3]];
  for (let step = 0; step < 24; step++) {
    [x, y] = [y, (2 * x + 3 * y) % 5];
    const lane = x + 5 * y;
    const kept = [state[2 * lane], state[2 * lane + 1]];
    rotated(state, lane, ((step + 1) * (step + 2) / 2) % 64, low, high);
    [low, high] = kept;
  }
}

function chi(state) {
  const row = new Uint32Array(10);
  for (let y = 0; y < 5; y++) {
    row.set(state.subarray(10 * y, 10 * y + 10));
    for (let place = 0; place < 10; place++) {
      state[10 * y + place] = row[place] ^ (~row[(place + 2) % 10] & row[(place + 4) % 10]);
    }
  }
}

const CONSTANTS = (() => {
  const constants = [];
  let register = 1;
  for (let round = 0; round < 24; round++) {
    const halves = [0, 0];
    for (let j = 0; j < 7; j++) {
      const bit = 2 ** j - 1;
      if (register & 1) halves[bit < 32 ? 0 : 1] ^= 1 << bit % 32;
      register = register & 0x80 ? ((register << 1) ^ 0x71) & 0xff : register << 1;
    }
    constants.push(halves);
  }
  return constants;
})();

function permute(state) {
  for (const [low, high] of CONSTANTS) {
    theta(state);
    rhoAndPi(state);
    chi(state);
    state[0] ^= low;
    state[1] ^= high;
  }
}

function absorb(state, block) {
  for (let place = 0; place < RATE; place++) {
    state[place >>> 2] ^= block[place] << (8 * (place & 3));
  }
  permute(state);
}

export function shake256(message, length) {
  const state = new Uint32Array(50);
  const padded = new Uint8Array((Math.floor(message.length / RATE) + 1) * RATE);
  padded.set(message);
  padded[message.length] ^= 0x1f;
  padded[padded.length - 1] ^= 0x80;
  for (let start = 0; start < padded.length; start += RATE) absorb(state, padded.subarray(start, start + RATE));
  const output = new Uint8Array(length);
  for (let place = 0; place < length; place++) {
    const inside = place % RATE;
    if (place && inside === 0) permute(state);
    output[place] = state[inside >>> 2] >>> (8 * (inside & 3));
  }
  return output;
}

export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function utf8(text) {
  return new TextEncoder().encode(text);
}
