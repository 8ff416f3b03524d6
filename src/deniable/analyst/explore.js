"use strict";
// A release in a page: what `release.count` computes (estimation/model, estimation/estimate.py), and a form to ask it.
(() => {
  const Z = 1.959963984540054, TAIL = 0.025, FEW = 50, LOWER = 0.25, UPPER = 0.5, LAPLACE_TAIL = 0.3, NEARLY = 1e-9;
  const STRAIGHT = 1e-3, CLOSE = 1e-6, ROUNDED = 1e-6;
  const LEAST = 1, MOST_GROUPS = 200, MOST_WORK = 3e9;
  const meta = JSON.parse(document.getElementById("meta").textContent);
  const add = (numbers) => numbers.reduce((sum, one) => sum + one, 0);

  // -- Intervals (estimation/limits.py) --------------------------------------------------------------------------------

  const LANCZOS = [
    0.99999999999999709182, 57.156235665862923517, -59.597960355475491248, 14.136097974741747174,
    -0.49191381609762019978, 0.33994649984811888699e-4, 0.46523628927048575665e-4, -0.98374475304879564677e-4,
    0.15808870322491248884e-3, -0.21026444172410488319e-3, 0.2174396181152126432e-3, -0.16431810653676389022e-3,
    0.84418223983852743293e-4, -0.2619083840158140867e-4, 0.36899182659531622704e-5,
  ];

  const logGamma = (a) => {
    const t = a + 607 / 128 + 0.5;
    let sum = LANCZOS[0];
    for (let i = 1; i < LANCZOS.length; i += 1) sum += LANCZOS[i] / (a + i);
    return (a + 0.5) * Math.log(t) - t + Math.log((2.5066282746310005 * sum) / a);
  };

  // The regularised lower incomplete gamma function, by its series or its continued fraction.
  const gammaP = (a, x) => {
    if (x <= 0) return 0;
    const front = Math.exp(a * Math.log(x) - x - logGamma(a));
    if (x < a + 1) {
      let term = 1 / a, sum = term;
      for (let n = 1; n < 1e6 && Math.abs(term) > 1e-17 * Math.abs(sum); n += 1) sum += term *= x / (a + n);
      return front * sum;
    }
    let b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (let i = 1; i < 1e6; i += 1) {
      const an = -i * (i - a);
      b += 2;
      d = 1 / (an * d + b || 1e-300);
      c = b + an / c || 1e-300;
      h *= d * c;
      if (Math.abs(d * c - 1) < 1e-16) break;
    }
    return 1 - front * h;
  };

  const gammaInverse = (a, p) => {
    let low = 0, high = a + 1;
    while (gammaP(a, high) < p) high *= 2;
    for (let i = 0; i < 200 && high - low > 1e-16 * high; i += 1) {
      const middle = (low + high) / 2;
      if (gammaP(a, middle) < p) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  };

  // Of a sample no hit at all still leaves rows that were not taken: exact limits of few hits, else a score interval.
  const reach = (variance, slope) => {
    if (variance < FEW * slope * slope) {
      const hits = variance / (slope * slope);
      const lower = hits > 0 ? Math.max(hits - gammaInverse(hits, TAIL), 0) : 0;
      const upper = Math.max(gammaInverse(hits + 1, 1 - TAIL) - hits, 0);
      return slope > 0 ? [slope * lower, slope * upper] : [-slope * upper, -slope * lower];
    }
    const shift = (Z * Z * slope) / 2, half = Math.sqrt(shift * shift + Z * Z * variance);
    return [half - shift, half + shift];
  };

  const normal = (t) => (t > 0 ? 1 - normal(-t) : (1 - gammaP(0.5, (t * t) / 2)) / 2);
  const within = (number, low, high) => Math.min(Math.max(number, low), high);

  // k2 and k3 of an estimate whose truth is so far above the smallest one.
  const cumulantsAt = (known, above) => [Math.max(known.second + known.secondSlope * above, 0), known.third + known.thirdSlope * above];

  // Whether an estimate as high as this one, or as low, is too unlikely for a truth.
  const unlikely = (value, truth, smallest, known, above) => {
    const [second, third] = cumulantsAt(known, truth - smallest), error = Math.sqrt(second);
    const jump = second > 0 ? Math.abs(third) / second : 0, moved = value - truth + (above ? -LOWER : UPPER) * jump;
    let t = error > 0 ? moved / error : moved === 0 ? 0 : Math.sign(moved) * Infinity;
    let skew = error > 0 ? third / error ** 3 : 0;
    if (skew < 0) [t, skew] = [-t, -skew];
    const upper = third >= 0 === above;
    if (!(skew > STRAIGHT)) return normal(upper ? -t : t) < TAIL;
    const shape = 4 / (skew * skew), reached = Math.max(shape + t * Math.sqrt(shape), 0);
    const below = reached === Infinity ? 1 : gammaP(shape, reached);
    return (upper ? 1 - below : below) < TAIL;
  };

  const firstWhole = (holds, least, most) => {
    let low = least - 1, high = most;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (holds(middle)) high = middle;
      else low = middle;
    }
    return high;
  };

  // Halves to the even number, as NumPy rounds them.
  const nearest = (number) => (Math.abs(number % 1) === 0.5 ? 2 * Math.round(number / 2) : Math.round(number));

  const limitsOf = (given, variance, known, smallest, largest) => {
    const value = within(given, smallest, largest), few = known !== null && Number.isFinite(variance);
    if (few && largest > smallest) {
      const [second, third] = cumulantsAt(known, value - smallest);
      if (second ** 3 < FEW * third ** 2) {
        const middle = within(nearest(value), smallest, largest);
        return [
          firstWhole((truth) => !unlikely(value, truth, smallest, known, true), smallest, middle),
          -firstWhole((truth) => !unlikely(value, -truth, smallest, known, false), -largest, -middle),
        ];
      }
    }
    const slope = few && variance > 0 ? known.secondSlope : 0, shift = (Z * Z * slope) / 2;
    const half = Math.sqrt(shift * shift + Z * Z * Math.max(variance, 0));
    const [low, high] = [Math.ceil(value - half + shift - CLOSE), Math.floor(value + half + shift + CLOSE)];
    return (low > high ? [nearest(value), nearest(value)] : [low, high]).map((end) => within(end, smallest, largest));
  };

  // ``known``: its cumulants, or null; of a sample its slope.
  const figure = (value, variance, known, smallest, largest, rows) => {
    if (variance === null) return { value, low: null, high: null, stderr: null, smallest, largest, rows, hopeless: false };
    if (meta.share < 1) {
      const [below, above] = reach(variance, known), stderr = Math.sqrt(variance);
      const [low, high] = [Math.floor(Math.min(value, Math.max(value - below, smallest), largest)), Math.ceil(Math.max(value, Math.min(value + above, largest), smallest))];
      return { value, stderr, smallest, largest, rows, low, high, hopeless: largest > smallest && 2 * Z * stderr >= largest - smallest };
    }
    if (known !== null && variance <= 0 && smallest < largest) {
      const [typical] = cumulantsAt(known, within(value, smallest, largest) - smallest);
      if (typical > ROUNDED) variance = typical;
    }
    const stderr = Math.sqrt(variance), hopeless = largest > smallest && 2 * Z * stderr >= largest - smallest;
    const [low, high] = hopeless ? [smallest, largest] : limitsOf(value, variance, known, smallest, largest);
    return { value, stderr, smallest, largest, rows, low, high, hopeless };
  };

  // The cumulants of sums of weights, from how many rows there are of each kind and their weights' moments
  // (estimation/model/moments.py).
  const cumulantsOf = (parts) => {
    const made = { second: 0, secondSlope: 0, third: 0, thirdSlope: 0 };
    let satisfy = 0;
    for (const [rows, { share, own, every }] of parts) {
      const others = own.map((one, j) => (1 - share > 1e-12 ? (every[j] - share * one) / (1 - share) : 0));
      made.second += rows * others[0];
      made.third += rows * others[1];
      made.secondSlope += rows * share * (own[0] - 1 - others[0]);
      made.thirdSlope += rows * share * (own[1] - 3 * own[0] + 2 - others[1]);
      satisfy += rows * share;
    }
    made.secondSlope = satisfy > 0 ? made.secondSlope / satisfy : 0;
    made.thirdSlope = satisfy > 0 ? made.thirdSlope / satisfy : 0;
    return made;
  };

  // Moments of a set's weights, given what a value expects of numbers of what it shows.
  const momentsOf = (back, weights, inside, often) => {
    const share = add(inside.map((one, x) => one * often[x])), some = add(inside);
    const raised = [2, 3].map((power) => back(weights.map((w) => w ** power)));
    const average = (expected) => {
      if (share > 0) return add(expected.map((one, x) => one * inside[x] * often[x])) / share;
      return some > 0 ? add(expected.map((one, x) => one * inside[x])) / some : 0;
    };
    return { share, own: raised.map(average), every: raised.map((expected) => add(expected.map((one, x) => one * often[x]))) };
  };

  const certainMoments = () => ({ share: 0, own: [1, 1], every: [0, 0] });

  const backThroughCoins = (p, r) => (z) => {
    const drawn = add(z.map((one, y) => one * r[y]));
    return z.map((one, y) => p[y] * one + (1 - p[y]) * drawn);
  };

  const backThroughMatrix = (matrix, size) => (z) => {
    const made = new Float64Array(size);
    for (let y = 0; y < z.length; y += 1) for (let x = 0; x < size; x += 1) made[x] += z[y] * matrix[y * size + x];
    return made;
  };

  const backThroughSets = (model) => (z) => {
    const { m, size, truth } = model, members = array(model.members), inclusion = array(model.inclusion);
    const distribution = array(model.distribution), inside = new Float64Array(m);
    let all = 0;
    for (let set = 0; set < distribution.length; set += 1) {
      const own = z[set] * distribution[set];
      all += own;
      for (let j = set * size; j < (set + 1) * size; j += 1) inside[members[j]] += own;
    }
    return inside.map((one, x) => (truth * one) / inclusion[x] + (1 - truth) * all);
  };

  // -- The rows, and what is asked of them -----------------------------------------------------------------------------

  const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
  let buffer = null;

  const array = (number) => {
    const [kind, start, length] = meta.arrays[number];
    return new KINDS[kind](buffer, start, length);
  };

  const unpack = async () => {
    const text = atob(document.getElementById("block").textContent.trim());
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    buffer = await new Response(stream).arrayBuffer();
  };

  const columnOf = (name) => [...meta.public, ...meta.sensitive].find((column) => column.name === name);
  const isSensitive = (column) => column.part !== undefined;

  // Which codes of a column satisfy a condition, missing last: a list of values (null is missing), or {from, to}.
  const maskOf = (column, condition) => {
    const size = column.values.length, mask = new Uint8Array(size + 1);
    if (Array.isArray(condition)) {
      const wanted = new Set(condition);
      column.values.forEach((value, place) => { mask[place] = wanted.has(value) ? 1 : 0; });
      mask[size] = wanted.has(null) ? 1 : 0;
    } else {
      const { from = null, to = null } = condition;
      column.values.forEach((value, place) => {
        mask[place] = (from === null || value >= from) && (to === null || value <= to) ? 1 : 0;
      });
    }
    return mask;
  };

  // A question: masks of public columns, masks of sensitive ones, and the public columns that it is grouped by.
  const question = (where, by = []) => {
    const masks = Object.entries(where).map(([name, condition]) => {
      const column = columnOf(name);
      if (column === undefined) throw new Error(`There is no column ${JSON.stringify(name)} in this page.`);
      return [column, maskOf(column, condition)];
    });
    return {
      public: masks.filter(([column]) => !isSensitive(column)),
      sensitive: masks.filter(([column]) => isSensitive(column)),
      by: by.map(columnOf),
    };
  };

  // For each packed row its group, -1 where the public conditions do not hold; and the groups' codes.
  const grouped = (asked) => {
    const group = new Int32Array(meta.packed);
    for (const [column, mask] of asked.public) {
      const codes = array(column.codes);
      for (let i = 0; i < meta.packed; i += 1) if (!mask[codes[i]]) group[i] = -1;
    }
    if (asked.by.length === 0) return [group, [[]]];
    const numbers = new Map(), keys = [], codes = asked.by.map((column) => array(column.codes));
    for (let i = 0; i < meta.packed; i += 1) {
      if (group[i] < 0) continue;
      let code = 0;
      for (let j = 0; j < codes.length; j += 1) code = code * (asked.by[j].values.length + 1) + codes[j][i];
      let number = numbers.get(code);
      if (number === undefined) {
        number = keys.length;
        numbers.set(code, number);
        keys.push(codes.map((own) => own[i]));
      }
      group[i] = number;
    }
    return [group, keys];
  };

  // -- One part: rows show a state, and a set of values gives each state a weight (estimation/model/states.py) -----------

  const slopes = (slope, weights, often) => {
    const q = meta.share, mass = add(often);
    let mean = 0;
    for (let y = 0; y < often.length; y += 1) mean += (often[y] / (mass || 1)) * weights[y];
    let below = q < 1 ? (1 - q) * mean * mean : 0;
    for (let y = 0; y < often.length; y += 1) {
      const own = (q * often[y]) / (mass || 1), u = weights[y] / q, centred = u - mean;
      slope.above += own * centred * (u * u - u);
      below += own * centred * centred;
    }
    slope.below += below;
  };

  const cellWeights = (cell, inside) => {
    const size = inside.length, replaced = array(cell.replaced), weights = new Float64Array(size);
    if (cell.coins !== undefined) {
      const p = array(cell.coins);
      let asked = 0, all = 1;
      for (let y = 0; y < size; y += 1) {
        asked += (inside[y] * replaced[y]) / p[y];
        all += (replaced[y] * (1 - p[y])) / p[y];
      }
      for (let y = 0; y < size; y += 1) weights[y] = (inside[y] - ((1 - p[y]) * asked) / all) / p[y];
    } else if (cell.weights !== undefined) {
      const matrix = array(cell.weights);
      for (let x = 0; x < size; x += 1) {
        if (inside[x]) for (let y = 0; y < size; y += 1) weights[y] += matrix[x * size + y];
      }
    } else {
      weights.fill(add(inside.map((one, y) => one * replaced[y])));
    }
    return weights;
  };

  const ofCells = (model, chosen) => {
    const count = add(model.cells.map((cell) => array(cell.positions).length));
    const made = { w: new Float64Array(count), least: new Uint8Array(count), most: new Uint8Array(count) };
    const slope = { above: 0, below: 0 }, kinds = new Int32Array(count), known = [];
    let start = 0;
    for (const cell of model.cells) {
      const inside = Float64Array.from(array(cell.positions), (place) => chosen[place]);
      const least = inside.reduce((a, b) => Math.min(a, b)), most = inside.reduce((a, b) => Math.max(a, b));
      const weights = least === most ? inside.map(() => most) : cellWeights(cell, inside);
      made.w.set(weights, start);
      made.least.fill(least, start, start + inside.length);
      made.most.fill(most, start, start + inside.length);
      const total = add(inside), replaced = array(cell.replaced);
      if (meta.share < 1) slopes(slope, weights, inside.map((one, y) => replaced[y] / 2 + (total > 0 ? one / (2 * total) : 0)));
      const back = cell.channel === undefined ? backThroughCoins(array(cell.kept), replaced) : backThroughMatrix(array(cell.channel), inside.length);
      kinds.fill(known.length, start, start + inside.length);
      known.push(least === most ? certainMoments() : momentsOf(back, weights, inside, array(cell.often)));
      start += inside.length;
    }
    return { ...made, kinds, known, slope: slope.below > NEARLY ? slope.above / slope.below : 0 };
  };

  // Line-ups: a set counts what its members score (estimation/model/lineups.py).
  const ofSets = (model, chosen) => {
    const { m, size } = model, members = array(model.members), sets = members.length / size;
    const scores = array(model.scores), distribution = array(model.distribution), score = new Float64Array(m);
    let asked = 0;
    for (let x = 0; x < m; x += 1) {
      if (!chosen[x]) continue;
      asked += 1;
      for (let member = 0; member < m; member += 1) score[member] += scores[x * m + member];
    }
    const states = sets + (model.exempt ? 1 : 0), certain = asked === 0 || asked === m;
    const w = new Float64Array(states), holding = new Float64Array(sets);
    let total = 0;
    for (let set = 0; set < sets; set += 1) {
      let sum = 0, held = 0;
      for (let j = set * size; j < (set + 1) * size; j += 1) {
        sum += score[members[j]];
        held += chosen[members[j]];
      }
      w[set] = certain ? (asked > 0 ? 1 : 0) : sum;
      holding[set] = (held / Math.max(asked, 1e-300)) * distribution[set];
      total += holding[set];
    }
    const slope = { above: 0, below: 0 }, kinds = new Int32Array(states);
    if (meta.share < 1) slopes(slope, w, holding.map((one, set) => distribution[set] / 2 + (total > 0 ? one / (2 * total) : 0)));
    const least = new Uint8Array(states).fill(asked === m ? 1 : 0), most = new Uint8Array(states).fill(asked > 0 ? 1 : 0);
    const known = [certain ? certainMoments() : momentsOf(backThroughSets(model), w.slice(0, sets), chosen.slice(0, m), array(model.often))];
    if (model.exempt) {
      w[sets] = least[sets] = most[sets] = chosen[m];
      kinds[sets] = known.push(certainMoments()) - 1;
    }
    return { w, least, most, kinds, known, slope: slope.below > NEARLY ? slope.above / slope.below : 0 };
  };

  const chosenValues = (asked) => {
    const chosen = new Float64Array(meta.domain).fill(1);
    for (const [column, mask] of asked.sensitive) {
      const of = array(column.of);
      for (let place = 0; place < meta.domain; place += 1) chosen[place] *= mask[of[place]];
    }
    return chosen;
  };

  // What the noisy histogram says the whole table's estimate is off by (estimation/calibration.py).
  const controlOf = (known, chosen, w) => {
    if (known === null) return null;
    const total = array(known.total), counts = array(known.counts), noisy = array(known.noisy);
    let error = 0, spread = 0, rows = 0, asked = 0, all = 0;
    for (let y = 0; y < total.length; y += 1) {
      error += total[y] * w[y];
      spread += total[y] * (w[y] * w[y] - w[y]);
      rows += total[y];
    }
    for (let x = 0; x < counts.length; x += 1) {
      error -= chosen[x] * counts[x];
      asked += chosen[x] * noisy[x];
      all += noisy[x];
    }
    const left = known.variance * (asked - (asked * asked) / Math.max(all, 1));
    return { error, noise: spread + left, tail: LAPLACE_TAIL * left, typical: spread / Math.max(rows, 1) };
  };

  const onePart = (asked, group, groups) => {
    const chosen = chosenValues(asked);
    const { w, least, most, kinds, known, slope } = meta.model.kind === "sets" ? ofSets(meta.model, chosen) : ofCells(meta.model, chosen);
    const often = array(meta.often), q = meta.share, codes = meta.sensitive.length ? array(meta.sensitive[0].codes) : null;
    const sums = Array.from({ length: groups }, () => ({ n: 0, first: 0, squares: 0, least: 0, most: 0, of: known.map(() => 0) }));
    for (let i = 0; i < meta.packed; i += 1) {
      if (group[i] < 0) continue;
      const sum = sums[group[i]], state = codes[i], n = often[i];
      sum.n += n;
      sum.first += n * w[state];
      sum.squares += n * w[state] * w[state];
      sum.least += n * least[state];
      sum.most += n * most[state];
      sum.of[kinds[state]] += n;
    }
    const control = controlOf(meta.control, chosen, w), errors = meta.learned === null ? null : learnedErrors(asked, chosen, group, sums);
    return sums.map((sum, number) => {
      const [smallest, largest] = possible(sum.least, sum.most), rows = sum.n / q;
      let value = sum.first / q;
      if (meta.is_learned) {
        if (errors === null && largest > smallest) return figure(value, null, null, smallest, largest, rows);
        const { variance: error, slope: jump } = errors === null ? { variance: 0, slope: 0 } : errors(number, value);
        const second = error - jump * (value - smallest);
        const jumps = { second, secondSlope: jump, third: jump * second, thirdSlope: jump * jump };
        return figure(value, error, q < 1 ? jump : jumps, smallest, largest, rows);
      }
      if (!meta.unbiased) return figure(value, largest > smallest ? Infinity : 0, q < 1 ? 0 : null, smallest, largest, rows);
      const raw = sum.squares / (q * q) - sum.first / q;
      let variance = Math.max(raw, 0);
      if (control !== null) {
        const beta = control.noise > 0 ? (rows * control.typical) / control.noise : 0;
        const own = raw - (2 * beta * (sum.squares - sum.first)) / q + beta * beta * control.noise;
        value -= beta * control.error;
        variance = Math.max(own, 0) + Math.max(beta * beta * control.tail, 0);
      }
      const left = raw > 0 ? variance / raw : 1, less = control === null ? 1 : Math.min(left, 1);
      const own = cumulantsOf(sum.of.map((of, kind) => [of, known[kind]]));
      const scaled = { second: own.second * less, secondSlope: own.secondSlope * less, third: own.third * less ** 1.5, thirdSlope: own.thirdSlope * less ** 1.5 };
      return figure(value, variance, q < 1 ? slope * less : scaled, smallest, largest, rows);
    });
  };

  // What is possible at all, by what is public: of a sample, the rows outside of it may be anything.
  const possible = (least, most) => {
    if (meta.share === 1) return [least, most];
    return [least, meta.rows - (add(array(meta.often)) - most)];
  };

  // -- Several parts: a row counts with the product of its columns' weights (estimation/model/several.py, swapped.py) ----

  const factorWeights = (column, mask) => {
    const { factor } = column, missing = column.values.length;
    if (factor.kind === "coin") {
      const masses = array(factor.masses), p = factor.coin;
      const mass = add(masses.map((one, state) => one * mask[state]));
      let w = Float64Array.from(masses, (_, state) => (mask[state] - (1 - p) * mass) / p);
      if (column.exempt) w = Float64Array.of(...w, mask[missing]);
      const coins = w.map((_, state) => (state < masses.length ? p : 1)), drawn = w.map((_, state) => masses[state] ?? 0);
      const inside = w.map((_, state) => mask[Math.min(state, missing)]);
      return { w, mass, moving: masses.length, wide: false, known: momentsOf(backThroughCoins(coins, drawn), w, inside, array(factor.often)), control: controlOf(column.control, inside, w) };
    }
    const size = factor.kind === "sets" ? factor.m + (factor.exempt ? 1 : 0) : Math.sqrt(array(factor.weights).length);
    const chosen = Float64Array.from({ length: size }, (_, state) => mask[Math.min(state, missing)]);
    const w = factor.kind === "sets" ? ofSets(factor, chosen).w : cellWeights({ ...factor, replaced: factor.weights }, chosen);
    const through = factor.kind === "sets" ? backThroughSets(factor) : backThroughMatrix(array(factor.channel), size);
    const back = factor.kind === "sets" && factor.exempt ? (z) => Float64Array.of(...through(z.slice(0, -1)), z[z.length - 1]) : through;
    const known = momentsOf(back, w, chosen, array(factor.often)), control = controlOf(column.control, chosen, w);
    return { w, known, control, wide: true, full: chosen.every((one) => one === 1), empty: chosen.every((one) => one === 0) };
  };

  const severalParts = (asked, group, groups) => {
    const factors = asked.sensitive.map(([column, mask]) => ({ column, codes: array(column.codes), ...factorWeights(column, mask) }));
    const swapped = factors.filter((one) => one.column.swapped !== undefined);
    const often = array(meta.often), q = meta.share;
    const sums = Array.from({ length: groups }, () => ({ n: 0, first: 0, squares: 0, pairs: swapped.map(() => [0, 0]), followed: factors.map(() => 0) }));
    for (let i = 0; i < meta.packed; i += 1) {
      if (group[i] < 0) continue;
      const sum = sums[group[i]], n = often[i];
      let w = 1;
      for (const factor of factors) w *= factor.w[factor.codes[i]];
      sum.n += n;
      sum.first += n * w;
      sum.squares += n * w * w;
      factors.forEach((own, place) => { sum.followed[place] += n * w * (own.w[own.codes[i]] - 1); });
      swapped.forEach((own, place) => {
        if (own.codes[i] >= own.moving) return;
        let others = n;
        for (const factor of factors) if (factor !== own) others *= factor.w[factor.codes[i]];
        sum.pairs[place][0] += others;
        sum.pairs[place][1] += n * w;
      });
    }
    const average = (one) => {
      const total = array(one.column.total);
      return add(total.map((rows, state) => rows * one.w[state])) / Math.max(add(total), 1);
    };
    const certain = factors.every((one) => one.wide && one.full), never = factors.some((one) => one.wide && one.empty);
    const whole = factors.reduce((made, { known }) => ({
      share: made.share * known.share,
      own: made.own.map((one, j) => one * known.own[j]),
      every: made.every.map((one, j) => one * known.every[j]),
    }), { share: 1, own: [1, 1], every: [1, 1] });
    const rounding = add(swapped.map((one) => one.column.rounding));
    return sums.map((sum) => {
      let value = sum.first / q;
      const [smallest, largest] = possible(certain ? sum.n : 0, never ? 0 : sum.n), rows = sum.n / q;
      let variance = sum.squares / (q * q) - sum.first / q;
      swapped.forEach((one, place) => {
        const [all, having] = sum.pairs[place].map((number) => number / q), b = one.mass, p = one.column.factor.coin;
        const first = (1 - b) ** 2 * all * having + b * b * all * (all - having);
        variance -= (2 * p * (1 - p) * first + (1 - p) ** 2 * b * (1 - b) * all * all) / (one.column.swapped * p * p);
      });
      const raw = Math.max(variance, rounding);
      let tail = 0;
      factors.forEach(({ control }, place) => {
        if (control === null || control.noise <= 0) return;
        const others = factors.reduce((made, one, at) => (at === place ? made : made * average(one)), 1);
        const beta = (rows * control.typical * others) / control.noise;
        value -= beta * control.error;
        variance += beta * beta * control.noise - (2 * beta * sum.followed[place]) / q;
        tail += beta * beta * control.tail;
      });
      variance = Math.max(variance, rounding) + Math.max(tail, 0);
      const known = factors.some(({ control }) => control !== null), less = known && raw > 0 ? Math.min(variance / raw, 1) : 1;
      const own = swapped.length > 0 ? null : cumulantsOf([[sum.n, whole]]);
      const scaled = own && { second: own.second * less, secondSlope: own.secondSlope * less, third: own.third * less ** 1.5, thirdSlope: own.thirdSlope * less ** 1.5 };
      return figure(value, variance, q < 1 ? 1 / q - 1 : scaled, smallest, largest, rows);
    });
  };

  // -- Learned releases: what their model may be off by (learned/uncertainty.py, estimation/model/learned.py) -----------

  let model = null, spent = 0; // spent: operations of what is shown now, or of one count

  const inverted = (matrix, n) => {
    const a = Float64Array.from(matrix), inverse = new Float64Array(n * n);
    for (let i = 0; i < n; i += 1) inverse[i * n + i] = 1;
    for (let column = 0; column < n; column += 1) {
      let pivot = column;
      for (let i = column + 1; i < n; i += 1) if (Math.abs(a[i * n + column]) > Math.abs(a[pivot * n + column])) pivot = i;
      for (let j = 0; pivot !== column && j < n; j += 1) {
        [a[pivot * n + j], a[column * n + j]] = [a[column * n + j], a[pivot * n + j]];
        [inverse[pivot * n + j], inverse[column * n + j]] = [inverse[column * n + j], inverse[pivot * n + j]];
      }
      const scale = 1 / a[column * n + column];
      for (let j = 0; j < n; j += 1) {
        a[column * n + j] *= scale;
        inverse[column * n + j] *= scale;
      }
      for (let i = 0; i < n; i += 1) {
        const times = a[i * n + column];
        if (i === column || times === 0) continue;
        for (let j = 0; j < n; j += 1) {
          a[i * n + j] -= times * a[column * n + j];
          inverse[i * n + j] -= times * inverse[column * n + j];
        }
      }
    }
    return inverse;
  };

  class Model {
    constructor(given) {
      Object.assign(this, given);
      for (const name of ["place", "rows", "joint", "normal", "base", "expected", "size", "prior", "noise", "together", "explains"]) {
        this[name] = array(given[name]);
      }
      this.levels = given.levels.map(array);
      this.look = given.look.map(array);
      this.width = this.K + 1;
      this.solved = new Map();
    }

    // Pr[s | q] of every combination, in the numbers that it was learned in.
    sharesOf(s) {
      const shares = new Float64Array(this.combinations);
      for (let q = 0; q < this.combinations; q += 1) {
        let z = 0;
        for (const codes of this.look) z = Math.fround(z + this.joint[codes[q] * this.m + s]);
        shares[q] = Math.exp(z + this.base[s] - this.normal[q]);
      }
      return shares;
    }

    // The inverse of S, and J tau^2.
    ofValue(s) {
      if (this.solved.has(s)) return this.solved.get(s);
      const { seen, width, size, m } = this, shares = this.sharesOf(s);
      const jac = new Float64Array(seen * width);
      for (let q = 0; q < this.combinations; q += 1) {
        const rows = this.rows[q] * shares[q];
        for (const one of this.levels) {
          if (one[q] >= seen) continue;
          for (const other of this.levels) jac[one[q] * width + other[q]] += rows;
          jac[one[q] * width + this.K] += rows;
        }
      }
      const both = jac.map((one, at) => one * this.prior[at % width]);
      const share = Float64Array.from({ length: seen }, (_, i) => this.expected[i * m + s] / Math.max(size[i], 1));
      const covariance = new Float64Array(seen * seen);
      for (let i = 0; i < seen; i += 1) {
        for (let j = 0; j < seen; j += 1) {
          let sum = jac[i * width + j] + share[i] * this.together[i * seen + j] * share[j];
          for (let k = 0; k < width; k += 1) sum += both[i * width + k] * jac[j * width + k];
          covariance[i * seen + j] = sum + (i === j ? this.noise[i] : 0);
        }
      }
      for (let i = 0; i < seen; i += 1) {
        for (let j = 0; j < i; j += 1) {
          covariance[i * seen + j] = covariance[j * seen + i] = (covariance[i * seen + j] + covariance[j * seen + i]) / 2;
        }
      }
      const result = { inverse: inverted(covariance, seen), both, share, shares };
      this.solved.set(s, result);
      return result;
    }

    // What is needed of some rows, whatever value is asked about; `of` says how many each combination has.
    sums(of) {
      const { seen, width } = this, at = new Float64Array(width), shared = new Float64Array(seen);
      const cells = this.pairs.map(([one, other]) => new Float64Array(this.sizes[one] * this.sizes[other]));
      const places = this.pairs.map(([one, other]) => [this.levels[one], this.offsets[one], this.levels[other], this.offsets[other], this.sizes[other]]);
      const place = ([first, from, second, since, size], q) => (first[q] - from) * size + second[q] - since;
      for (let q = 0; q < this.combinations; q += 1) {
        if (of[q] === 0) continue;
        for (const codes of this.levels) at[codes[q]] += of[q];
        at[this.K] += of[q];
        for (let pair = 0; pair < cells.length; pair += 1) cells[pair][place(places[pair], q)] += of[q] * this.pairs[pair][2];
      }
      let squares = 0;
      for (const cell of cells) for (const one of cell) squares += one * one;
      for (let q = 0; q < this.combinations; q += 1) {
        let sum = 0;
        for (let pair = 0; pair < cells.length; pair += 1) sum += this.pairs[pair][2] * cells[pair][place(places[pair], q)];
        if (sum === 0) continue;
        for (const codes of this.levels) if (codes[q] < seen) shared[codes[q]] += sum * this.rows[q];
      }
      return { of, at, shared, squares };
    }

    // By what chance is multiplied, since rows are dealt, too.
    dealt(sums, rows) {
      let explained = 0;
      for (let k = 0; k < this.seen; k += 1) {
        for (let l = 0; l < this.seen; l += 1) explained += sums.at[k] * this.explains[k * this.seen + l] * sums.at[l];
      }
      return 1 + Math.min(Math.max(1 - (rows > 0 ? explained / rows : 0), 0), 1);
    }

    // The covariance of what the model may be off by, at one value.
    covariance(s, sums) {
      const { seen, width } = this, { inverse, both, share, shares } = this.ofValue(s), e = new Float64Array(width);
      for (let q = 0; q < this.combinations; q += 1) {
        if (sums.of[q] === 0) continue;
        const expected = sums.of[q] * shares[q];
        for (const codes of this.levels) e[codes[q]] += expected;
        e[this.K] += expected;
      }
      const mean = Math.abs(sums.at[this.K]) > 0 ? e[this.K] / sums.at[this.K] : 0;
      const cov = new Float64Array(seen);
      for (let i = 0; i < seen; i += 1) {
        let sum = e[i] + share[i] * mean * sums.shared[i];
        for (let k = 0; k < width; k += 1) sum += e[k] * both[i * width + k];
        cov[i] = sum;
      }
      let own = mean * mean * sums.squares, known = 0;
      for (let k = 0; k < width; k += 1) own += e[k] * this.prior[k] * e[k];
      for (let i = 0; i < seen; i += 1) {
        let sum = 0;
        for (let j = 0; j < seen; j += 1) sum += inverse[i * seen + j] * cov[j];
        known += cov[i] * sum;
      }
      return own - known;
    }
  }

  // The errors of all groups of a question; null where they take too long for a page.
  const learnedErrors = (asked, chosen, group, sums) => {
    if (model === null) model = new Model(meta.learned);
    const moved = Float64Array.from(chosen);
    if (2 * add(chosen) > chosen.length) moved.forEach((one, place) => { moved[place] = one - 1; });
    const needed = [...moved.keys()].filter((s) => moved[s] !== 0 && s < model.m);
    const values = [...new Set([...needed, ...model.frequent])].sort((a, b) => a - b);
    const fresh = values.filter((s) => !model.solved.has(s)).length;
    const solving = fresh * model.seen ** 2 * (model.width + 2 * model.seen);
    spent += solving + sums.length * model.combinations * (values.length * model.levels.length + 2 * model.pairs.length);
    if (spent > MOST_WORK) return null;
    const often = array(meta.often), states = array(meta.sensitive[0].codes);
    const of = sums.map(() => new Float64Array(model.combinations)), counts = sums.map(() => new Float64Array(model.m));
    for (let i = 0; i < meta.packed; i += 1) {
      if (group[i] < 0) continue;
      if (model.place[i] < model.combinations) of[group[i]][model.place[i]] += often[i];
      if (states[i] < model.m) counts[group[i]][states[i]] += often[i];
    }
    return (number, value) => {
      const here = model.sums(of[number]), rows = add(counts[number]), dealt = model.dealt(here, rows);
      const errors = new Map(values.map((s) => {
        const share = Math.exp(model.base[s]), least = rows > 0 ? Math.min(rows * share, LEAST) / rows : 0;
        const c = model.covariance(s, here) + (counts[number][s] + least * rows) * dealt;
        return [s, { c, own: Math.max(c, 0) }];
      }));
      const whole = Math.max(add([...errors.values()].map((one) => one.own)), 1e-9);
      let shift = 0, all = 0, first = 0, second = 0;
      for (const [s, { c, own }] of errors) {
        shift += (own / whole) * moved[s];
        all += c;
        first += c * moved[s];
        second += c * moved[s] * moved[s];
      }
      const variance = Math.max(second - 2 * shift * first + shift * shift * all, 0);
      const group_rows = Math.max(sums[number].n, 1), chance = (dealt * sums[number].n) / group_rows;
      return { variance, slope: (2 * chance - 2) * (1 - value / group_rows) };
    };
  };

  // Every count of a question, by its public groups.
  const answer = (asked) => {
    const [group, keys] = grouped(asked);
    if (asked.sensitive.length === 0 && meta.share === 1) {
      const often = array(meta.often), counts = keys.map(() => 0);
      for (let i = 0; i < meta.packed; i += 1) if (group[i] >= 0) counts[group[i]] += often[i];
      return [keys, counts.map((n) => figure(n, 0, null, n, n, n))];
    }
    return [keys, meta.joint ? severalParts(asked, group, keys.length) : onePart(asked, group, keys.length)];
  };

  const counted = (where) => answer(question(where))[1][0];
  const count = (where = {}) => {
    spent = 0;
    return counted(where);
  };

  // -- The same question in SQL and in Python ---------------------------------------------------------------------------

  const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;
  const inSql = (name) => `"${name.replaceAll('"', '""')}"`;

  const sqlValue = (column, value) => {
    if (column.kind === "number") return String(value);
    if (column.kind === "truth") return value ? "TRUE" : "FALSE";
    return `'${value.replaceAll("'", "''")}'`;
  };

  const pythonValue = (column, value) => {
    if (value === null) return "None";
    if (column.kind === "number") return String(value);
    if (column.kind === "truth") return value ? "True" : "False";
    if (column.kind === "date") return `datetime.date.fromisoformat(${JSON.stringify(value)})`;
    return column.kind === "time" ? `datetime.datetime.fromisoformat(${JSON.stringify(value)})` : JSON.stringify(value);
  };

  const ends = (column, { from = null, to = null }) => {
    const { values } = column;
    return [from ?? values[0], to ?? values[values.length - 1]];
  };

  const sqlCondition = ([name, condition]) => {
    const column = columnOf(name), quoted = inSql(name);
    if (!Array.isArray(condition)) {
      const [low, high] = ends(column, condition);
      return `${quoted} BETWEEN ${sqlValue(column, low)} AND ${sqlValue(column, high)}`;
    }
    if (column.item !== undefined) {
      const holds = `list_contains(${inSql(column.list)}, '${column.item.replaceAll("'", "''")}')`;
      return condition[0] ? holds : `NOT ${holds}`;
    }
    const known = condition.filter((value) => value !== null).map((value) => sqlValue(column, value));
    const among = known.length === 1 ? `${quoted} = ${known[0]}` : `${quoted} IN (${known.join(", ")})`;
    if (!condition.includes(null)) return among;
    return known.length === 0 ? `${quoted} IS NULL` : `(${among} OR ${quoted} IS NULL)`;
  };

  const pythonCondition = ([name, condition]) => {
    const column = columnOf(name), value = (one) => pythonValue(column, one), key = (text) => JSON.stringify(text);
    if (!Array.isArray(condition)) {
      const [low, high] = ends(column, condition);
      return `${key(name)}: dn.between(${value(low)}, ${value(high)})`;
    }
    if (column.item !== undefined) {
      const holds = `dn.contains(${JSON.stringify(column.item)})`;
      return `${key(column.list)}: ${condition[0] ? holds : `dn.not_(${holds})`}`;
    }
    return `${key(name)}: ${condition.length === 1 ? value(condition[0]) : `[${condition.map(value).join(", ")}]`}`;
  };

  const sqlOf = (where, by) => {
    const conditions = Object.entries(where).map(sqlCondition), groups = by.map((name) => (PLAIN.test(name) ? name : inSql(name)));
    const lines = [`SELECT ${[...groups, "COUNT(*) AS n"].join(", ")}`, "FROM release"];
    if (conditions.length > 0) lines.push(`WHERE ${conditions.join("\n  AND ")}`);
    if (by.length > 0) lines.push(`GROUP BY ${groups.join(", ")}`, `ORDER BY ${groups.join(", ")}`);
    return lines.join("\n");
  };

  const pythonOf = (where, by) => {
    const entries = Object.entries(where), lists = entries.map(([name]) => columnOf(name).list).filter((one) => one !== undefined);
    const dated = entries.some(([name]) => ["date", "time"].includes(columnOf(name).kind));
    const head = [...(dated ? ["import datetime", ""] : []), "import deniable as dn", "", 'release = dn.open_release("release")'];
    if (new Set(lists).size < lists.length) return [...head, `print(release.sql('''${sqlOf(where, by).replaceAll("\\", "\\\\").replaceAll("'''", "\\'\\'\\'")}'''))`].join("\n");
    const condition = `{${entries.map(pythonCondition).join(", ")}}`;
    const call = by.length > 0 ? `group_by(${JSON.stringify(by)}, where=${condition})` : `count(where=${condition})`;
    return [...head, `print(release.${call})`].join("\n");
  };

  // -- The page ---------------------------------------------------------------------------------------------------------

  const MISSING = "(missing)", TICKED = 12, LISTED = 200;
  const SVG = "http://www.w3.org/2000/svg";

  const element = (tag, attributes = {}, ...content) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
    made.append(...content);
    return made;
  };

  const drawn = (tag, attributes, text = "") => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };

  const said = (value) => (value === null ? MISSING : String(value));
  const number = (value, digits = 0) => {
    const text = value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return /^-0(\.0+)?$/.test(text) ? text.slice(1) : text;
  };
  const digitsOf = (one) => {
    const half = one.stderr === null ? 0 : Z * one.stderr;
    return !Number.isFinite(half) || half >= 2 || half === 0 ? 0 : Math.min(6, 1 - Math.floor(Math.log10(half)));
  };

  // A figure in words: a count, or its share of the rows that the public columns pick.
  const inWords = (one, share) => {
    const whole = share ? one.rows / 100 : 1, unit = share ? " %" : "";
    if (share && one.rows === 0) return { value: "no rows", interval: "" };
    const digits = share ? (one.stderr !== null && one.stderr * Z < whole ? 2 : 1) : digitsOf(one);
    const text = (figureOf) => number(figureOf / whole, digits);
    const interval = one.low === null ? "not computed here" : `${text(one.low)} to ${text(one.high)}${unit}`;
    return { value: `${text(one.value)}${unit}`, interval };
  };

  const state = { where: {}, rows: "", columns: "", share: false };

  const choiceSaid = (column) => {
    const condition = state.where[column.name];
    if (condition === undefined) return "all";
    if (!Array.isArray(condition)) return ends(column, condition).join(" to ");
    const names = condition.map(said);
    return names.length <= 3 ? names.join(", ") : `${names.slice(0, 2).join(", ")} and ${names.length - 2} more`;
  };

  const choose = (column, condition) => {
    const nothing = condition === null || (Array.isArray(condition) && condition.length === 0);
    if (nothing) delete state.where[column.name];
    else state.where[column.name] = condition;
    answered();
  };

  const ticks = (column, id, legend) => {
    const options = [...column.values, ...(column.missing ? [null] : [])], chosen = new Set();
    const box = element("div", { class: "ticks", role: "group", "aria-label": legend });
    const show = (part) => {
      const near = options.map((value, place) => [value, place]).filter(([value]) => said(value).toLowerCase().includes(part.toLowerCase()));
      box.replaceChildren(...near.slice(0, LISTED).map(([value, place]) => {
        const input = element("input", { type: "checkbox", id: `${id}-${place}` });
        input.checked = chosen.has(value);
        input.addEventListener("change", () => {
          if (input.checked) chosen.add(value);
          else chosen.delete(value);
          choose(column, options.filter((one) => chosen.has(one)));
        });
        return element("label", { for: input.id }, input, said(value));
      }));
      if (near.length > LISTED) box.append(element("p", {}, `${number(near.length - LISTED)} more: find them by a part of their name.`));
    };
    show("");
    if (options.length <= TICKED) return [box];
    const find = element("input", { type: "search", id: `${id}-find`, autocomplete: "off" });
    find.addEventListener("input", () => show(find.value));
    return [element("label", { for: find.id, class: "find" }, "Find a value", find), box];
  };

  const range = (column, id) => {
    const kind = column.kind === "number" ? "number" : column.kind === "date" ? "date" : "text", { values } = column;
    const read = (input) => (input.value === "" ? null : column.kind === "number" ? Number(input.value) : input.value);
    const inputs = ["from", "to"].map((end) => {
      const input = element("input", { type: kind, id: `${id}-${end}`, step: kind === "number" ? "any" : null, autocomplete: "off" });
      input.placeholder = String(end === "from" ? values[0] : values[values.length - 1]);
      input.addEventListener("change", () => {
        const [from, to] = inputs.map(read);
        choose(column, from === null && to === null ? null : { from, to });
      });
      return input;
    });
    const [from, to] = inputs;
    return [element("div", { class: "ends" }, element("label", { for: from.id }, "From", from), element("label", { for: to.id }, "to (included)", to))];
  };

  const chooser = (column, place) => {
    const id = `column-${place}`, wide = column.kind !== "text" && column.kind !== "truth" && column.values.length > TICKED;
    const legend = isSensitive(column) ? `Values of ${column.name}` : `Rows by ${column.name}`;
    const now = element("span", { class: "now", id: `${id}-now` }, "all");
    const content = wide ? range(column, id) : ticks(column, id, legend);
    return element("details", { class: "folded", "data-column": column.name }, element("summary", {}, `${column.name}: `, now), ...content);
  };

  const groupable = () => [...meta.public, ...meta.sensitive].filter((one) => one.values.length < MOST_GROUPS && one.item === undefined);

  const groupSelect = (key, label) => {
    const select = element("select", { id: `by-${key}` }, element("option", { value: "" }, "nothing"));
    for (const column of groupable()) select.append(element("option", { value: column.name }, column.name));
    select.addEventListener("change", () => {
      state[key] = select.value;
      answered();
    });
    return element("label", { for: select.id }, label, select);
  };

  const form = () => {
    const place = new Map([...meta.public, ...meta.sensitive].map((column, i) => [column, i]));
    const part = (title, note, columns) => element("fieldset", {}, element("legend", {}, title), element("p", {}, note), ...columns.map((one) => chooser(one, place.get(one))));
    const share = element("input", { type: "checkbox", id: "share" });
    share.addEventListener("change", () => {
      state.share = share.checked;
      answered();
    });
    const again = element("button", { type: "reset" }, "Start again");
    const asked = document.getElementById("form");
    asked.replaceChildren(
      part("Which rows", "Public columns are as they were. Nothing chosen: all rows.", meta.public),
      part("Which values", "Sensitive columns were changed: what is asked for is estimated.", meta.sensitive),
      element("fieldset", { class: "by" }, element("legend", {}, "Show"), groupSelect("rows", "For each"), groupSelect("columns", "and, as columns of a table, each"),
        element("label", { for: "share", class: "one" }, share, "as a share of the rows chosen by public columns"), again),
    );
    asked.addEventListener("submit", (event) => event.preventDefault());
    asked.addEventListener("reset", () => {
      Object.assign(state, { where: {}, rows: "", columns: "", share: false });
      form();
      answered();
    });
  };

  // The groups of a question, public or sensitive, each with its figure.
  const tabulated = (by) => {
    const hidden = by.filter(isSensitive), open = by.filter((column) => !isSensitive(column));
    let combinations = [{}];
    for (const column of hidden) {
      const condition = state.where[column.name], mask = condition === undefined ? null : maskOf(column, condition);
      const values = [...column.values, ...(column.missing ? [null] : [])];
      const asked = values.filter((value, i) => mask === null || mask[value === null ? column.values.length : i]);
      combinations = combinations.flatMap((one) => asked.map((value) => ({ ...one, [column.name]: value })));
    }
    const groups = [];
    for (const one of combinations) {
      const where = { ...state.where, ...Object.fromEntries(Object.entries(one).map(([name, value]) => [name, [value]])) };
      const [keys, figures] = answer(question(where, open.map((column) => column.name)));
      keys.forEach((key, i) => {
        const values = by.map((column) => (isSensitive(column) ? one[column.name] : column.values[key[open.indexOf(column)]] ?? null));
        groups.push({ values, order: by.map((column, j) => (values[j] === null ? Infinity : column.values.indexOf(values[j]))), figure: figures[i] });
      });
    }
    groups.sort((a, b) => a.order.reduce((decided, one, i) => decided || (one === b.order[i] ? 0 : one - b.order[i]), 0));
    return groups;
  };

  const HOPELESS = "nothing learned";

  const bars = (name, groups) => {
    const width = Math.max(260, Math.min(document.getElementById("shown").clientWidth || 640, 860)), narrow = width < 460;
    const left = narrow ? 90 : 190, right = 14, row = 26, letters = narrow ? 12 : 26;
    const at = (one) => (state.share ? (one.rows > 0 ? 100 / one.rows : 0) : 1);
    const tops = groups.map(({ figure: one }) => Math.max((one.high ?? one.value) * at(one), 0));
    const most = Math.max(...tops, 1e-9), x = (value) => left + (Math.min(Math.max(value, 0), most) / most) * (width - left - right);
    const height = groups.length * row + 26;
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Bars by ${name}, with intervals; the table below has the same numbers.` });
    groups.forEach(({ values, figure: one }, i) => {
      const y = i * row + 4, label = said(values[0]), scale = at(one);
      svg.append(drawn("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, label.length > letters ? `${label.slice(0, letters - 1)}…` : label));
      svg.append(drawn("rect", { class: one.hopeless ? "bar hopeless" : "bar", x: left, y, width: Math.max(x(one.value * scale) - left, 0), height: row - 10 }));
      if (one.low === null) return;
      const [low, high] = [x(one.low * scale), x(one.high * scale)], middle = y + (row - 10) / 2;
      svg.append(drawn("path", { class: "ends", d: `M${low} ${middle - 4}V${middle + 4}M${low} ${middle}H${high}M${high} ${middle - 4}V${middle + 4}` }));
    });
    const unit = state.share ? " %" : "", axis = groups.length * row + 6;
    svg.append(drawn("path", { class: "axis", d: `M${left} ${axis}H${width - right}` }));
    svg.append(drawn("text", { x: left, y: axis + 16 }, `0${unit}`));
    svg.append(drawn("text", { x: width - right, y: axis + 16, "text-anchor": "end" }, `${number(most, most < 10 ? 1 : 0)}${unit}`));
    return element("figure", {}, svg, element("figcaption", {}, "Bars are estimates, lines their 95 % intervals."));
  };

  const scrolling = (table, id) => element("div", { class: "scroll tall", role: "region", tabindex: "0", "aria-labelledby": id }, table);
  const captioned = (id, text) => element("caption", { id }, element("span", {}, text));

  const listed = (by, groups) => {
    const heads = [by[0].name, state.share ? "share" : "count", "95 % interval", "rows"];
    const body = groups.map(({ values, figure: one }) => {
      const words = inWords(one, state.share);
      const cells = [words.value, words.interval + (one.hopeless ? `; ${HOPELESS}` : ""), number(one.rows)];
      return element("tr", { class: one.hopeless ? "hopeless" : null }, element("th", { scope: "row" }, said(values[0])), ...cells.map((text) => element("td", { class: "number" }, text)));
    });
    const head = element("tr", {}, ...heads.map((text, i) => element("th", { scope: "col", class: i ? "number" : null }, text)));
    return scrolling(element("table", {}, captioned("listed", "Estimates by group; rows are those that the public columns pick."), element("thead", {}, head), element("tbody", {}, ...body)), "listed");
  };

  const crossed = (by, groups) => {
    const order = (place) => [...new Map(groups.map((one) => [one.order[place], one.values[place]])).entries()].sort((a, b) => a[0] - b[0]).map(([, value]) => value);
    const [across, down] = [order(1), order(0)], at = new Map(groups.map((one) => [JSON.stringify(one.values), one.figure]));
    const cell = (one) => {
      if (one === undefined) return element("td", { class: "number" }, "no rows");
      const words = inWords(one, state.share), note = one.hopeless ? HOPELESS : words.interval;
      return element("td", { class: one.hopeless ? "number hopeless" : "number" }, words.value, element("small", {}, note));
    };
    const head = element("tr", {}, element("th", { scope: "col" }, `${by[0].name} \\ ${by[1].name}`), ...across.map((value) => element("th", { scope: "col", class: "number" }, said(value))));
    const body = down.map((one) => element("tr", {}, element("th", { scope: "row" }, said(one)), ...across.map((other) => cell(at.get(JSON.stringify([one, other]))))));
    return scrolling(element("table", { class: "cross" }, captioned("crossed", "Estimates with their 95 % intervals."), element("thead", {}, head), element("tbody", {}, ...body)), "crossed");
  };

  const note = (grade, title, text) => element("div", { class: `note ${grade}` }, element("p", {}, element("span", { class: "grade" }, title)), element("p", {}, text));

  const REASON = "The interval is wider than everything that is possible: so few rows cannot say. Ask about more rows or values.";

  // Of how many rows an estimate of what is asked for is wider than all that is possible: 2 z sqrt(n v) > n.
  const least = () => {
    const where = Object.fromEntries(Object.entries(state.where).filter(([name]) => isSensitive(columnOf(name))));
    if (Object.keys(where).length === 0 || meta.is_learned) return null;
    const whole = counted(where);
    return whole.rows > 0 && Number.isFinite(whole.stderr) ? Math.ceil((4 * Z * Z * perRow(where)) / whole.rows) : null;
  };

  const perRow = (where) => {
    const kept = meta.control;
    meta.control = null; // of some rows the histogram says next to nothing
    const { stderr } = counted(where);
    meta.control = kept;
    return stderr * stderr;
  };

  const limits = (hopeless, groups) => {
    const items = [];
    if (meta.share < 1) items.push(`This page holds a sample, about ${number(100 * meta.share, 1)} % of the rows, each taken or not by chance. Its intervals hold that chance, too; deniable query answers from all rows, with narrower ones.`);
    if (meta.model === null) items.push("What its rows count for does not fit into a page, so sensitive columns cannot be asked here: deniable query answers them.");
    if (meta.unbiased === false) items.push("The channel of this release has no inverse: no count of a sensitive value has an interval narrower than all that is possible.");
    if (meta.is_learned && meta.learned === null) items.push("What the model may be off by does not fit into a page: it gives counts without intervals, and deniable query gives them with.");
    if (hopeless > 0) items.push(`${hopeless === groups ? "What is asked above" : `${number(hopeless)} of the ${number(groups)} groups above`}: ${REASON}`);
    const few = least();
    if (few !== null && few > 0) items.push(`For the values chosen above, anything about fewer than about ${number(few)} rows.`);
    items.push("What any one person's value is. How sure someone may become of it, What is promised says.");
    items.push("Sums, averages, medians, models, and conditions joined by OR: ask them by deniable query, or in Python.");
    for (const [name, why] of meta.left_out) items.push(`The column ${name}: ${why}.`);
    document.getElementById("limits").replaceChildren(element("ul", {}, ...items.map((text) => element("li", {}, text))));
  };

  const phrase = () => {
    const parts = Object.keys(state.where).map((name) => `${name}: ${choiceSaid(columnOf(name))}`);
    return parts.length > 0 ? parts.join("; ") : "all rows";
  };

  const answered = () => {
    spent = 0;
    for (const now of document.querySelectorAll("details[data-column]")) now.querySelector(".now").textContent = choiceSaid(columnOf(now.dataset.column));
    const by = [state.rows, state.columns].filter((name, i, all) => name !== "" && all.indexOf(name) === i).map(columnOf);
    const groups = tabulated(by), figures = document.getElementById("figures"), shown = document.getElementById("shown");
    const hopeless = groups.filter((one) => one.figure.hopeless).length;
    figures.replaceChildren();
    shown.replaceChildren();
    if (by.length === 0) {
      const one = counted(state.where), words = inWords(one, state.share);
      const exact = one.low !== null && one.low === one.high;
      const interval = one.low === null ? "interval not computed here" : exact || words.interval === "" ? "exact: public columns are as they were" : `95 %: ${words.interval}`;
      figures.append(element("p", { class: "estimate" }, words.value, element("small", {}, interval)), element("p", {}, `${phrase()}; ${number(one.rows)} rows by public columns.`));
      if (one.hopeless) figures.append(note("caution", HOPELESS, REASON));
      const first = Object.keys(state.where).some((name) => isSensitive(columnOf(name))) ? undefined : groupable().find(isSensitive);
      if (first !== undefined) {
        const each = tabulated([first]);
        shown.append(element("h3", {}, `For each ${first.name}`), bars(first.name, each), listed([first], each));
      }
    } else {
      const many = groups.length > MOST_GROUPS ? ` The first ${MOST_GROUPS} are shown.` : "";
      const kept = groups.slice(0, MOST_GROUPS);
      figures.append(element("p", {}, `${number(groups.length)} groups by ${by.map((one) => one.name).join(" and ")}; ${phrase()}.${many}`));
      if (hopeless > 0) figures.append(note("caution", `${number(hopeless)} groups: ${HOPELESS}`, REASON));
      if (by.length === 1 && kept.length > 0) shown.append(bars(by[0].name, kept), listed(by, kept));
      else if (kept.length > 0) shown.append(crossed(by, groups.length > MOST_GROUPS ? kept : groups));
    }
    const names = by.map((column) => column.name);
    document.getElementById("sql").textContent = sqlOf(state.where, names);
    document.getElementById("python").textContent = pythonOf(state.where, names);
    limits(by.length === 0 ? Number(counted(state.where).hopeless) : hopeless, by.length === 0 ? 1 : groups.length);
  };

  const copying = (button, source) => {
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const text = document.getElementById(source);
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text); // for the keys that copy
        button.textContent = "Selected: copy it now";
      }
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  };

  const ready = unpack().then(() => {
    form();
    answered();
    copying(document.getElementById("copy-sql"), "sql");
    copying(document.getElementById("copy-python"), "python");
    let width = innerWidth;
    addEventListener("resize", () => {
      if (width !== innerWidth) answered();
      width = innerWidth;
    });
  }).catch((problem) => {
    document.getElementById("figures").replaceChildren(note("serious", "This page cannot be read", String(problem)));
  });

  // For whoever opens the console: deniable.count({sex: ["F"], age: {from: 20, to: 40}})
  globalThis.deniable = Object.freeze({ ready, count, sql: sqlOf, python: pythonOf });
})();
