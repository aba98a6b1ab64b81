import { CHAIN } from '../../../decoding/sampler-chain.js';
import type { RowChain, SamplingBatch } from '../../../packed-call/sampling-batch.js';
import { visitInOrder } from './ordered-prefix.js';
import { type PhiloxKey, philoxUniform } from './philox.js';

/** Temperatures below this take the most probable token, as in RowSampler. */
const MIN_TEMPERATURE = Math.fround(1e-5);
/** Number of the draw that decides whether XTC applies: one that no row's own draws ever reach. */
const XTC_DRAW = 0xffff_ffff;
/** Number of most probable tokens from which mirostat estimates the exponent of Zipf's law. */
const ZIPF_TOKENS = 100;

/**
 * Draws the tokens of rows that have a chain, as the native one does (engine/executors/native/executor/sampler_chain.h):
 * engine/decoding/sampler-chain.ts says what each filter keeps. The tokens kept so far stand in ascending order; all is
 * computed in float64, and sums run in that order. Its memory is made once.
 */
export class ChainSampler {
  readonly #all: Int32Array;
  readonly #weights: Float64Array;
  readonly #keys: Float64Array;
  #ids: Int32Array;
  #logits: Float32Array = new Float32Array(0);
  #maximum = 0;
  readonly #byLogit = (a: number, b: number) => this.#logits[b]! - this.#logits[a]! || a - b;

  constructor(vocabSize: number) {
    this.#all = new Int32Array(vocabSize);
    this.#ids = this.#all;
    this.#weights = new Float64Array(vocabSize);
    this.#keys = new Float64Array(vocabSize);
  }

  /** @param logits free of NaN and Infinity, with a finite maximum */
  draw(sampling: SamplingBatch, { row, values }: RowChain, logits: Float32Array, key: PhiloxKey): number {
    this.#logits = logits;
    let count = 0;
    for (let id = 0; id < logits.length; id++) if (logits[id]! > -Infinity) this.#all[count++] = id;
    this.#ids = this.#all.subarray(0, count);
    const temperature = sampling.temperature[row]!;
    if (values[CHAIN.mirostat] !== 0) return this.#drawMirostat(values, temperature, key);
    const range = values[CHAIN.dynamicRange]!;
    this.#filter(sampling, row, values, range > 0 || values[CHAIN.temperatureLast] !== 0 ? 1 : temperature);
    const isExcluding = values[CHAIN.xtcProbability]! > 0;
    if (isExcluding && philoxUniform(key, XTC_DRAW) < values[CHAIN.xtcProbability]!)
      this.#excludeTopChoices(values[CHAIN.xtcThreshold]!);
    const last =
      range > 0 ? this.#dynamicTemperature(temperature, range, values[CHAIN.dynamicExponent]!) : temperature;
    return this.#drawOne(last, philoxUniform(key, 0));
  }

  #filter(sampling: SamplingBatch, row: number, values: Float64Array, temperature: number): void {
    const [topK, topP, minP] = [sampling.topK[row]!, sampling.topP[row]!, sampling.minP[row]!];
    if (values[CHAIN.topNSigma]! > 0) this.#keepTopNSigma(values[CHAIN.topNSigma]!);
    if (topK > 0) this.#keepTopK(topK);
    if (values[CHAIN.typicalP]! < 1) this.#keepTypical(values[CHAIN.typicalP]!);
    if (topP < 1) this.#keepTopP(topP, temperature);
    if (minP > 0) this.#keepMinP(minP, temperature);
  }

  #keepTopNSigma(deviations: number): void {
    const logits = this.#logits;
    const count = this.#ids.length;
    let sum = 0;
    for (const id of this.#ids) sum += logits[id]!;
    const mean = sum / count;
    let squares = 0;
    for (const id of this.#ids) squares += (logits[id]! - mean) * (logits[id]! - mean);
    this.#findMaximum();
    const least = this.#maximum - deviations * Math.sqrt(squares / count);
    this.#keepIf((id) => logits[id]! >= least);
  }

  #keepTopK(count: number): void {
    if (count >= this.#ids.length) return;
    let left = count;
    this.#keepWhile(this.#byLogit, () => --left > 0);
  }

  #keepTypical(mass: number): void {
    const sum = this.#weigh(1);
    const expected = this.#entropy(sum);
    const logSum = Math.log(sum);
    const keys = this.#keys;
    for (const id of this.#ids) keys[id] = Math.abs(logSum - this.#scaled(id, 1) - expected);
    let total = 0;
    this.#keepWhile(
      (a, b) => keys[a]! - keys[b]! || this.#byLogit(a, b),
      (id) => {
        total += this.#weights[id]!;
        return total <= mass * sum;
      },
    );
  }

  #keepTopP(mass: number, temperature: number): void {
    const sum = this.#weigh(temperature);
    let total = 0;
    this.#keepWhile(this.#byLogit, (id) => {
      total += this.#weights[id]!;
      return total < mass * sum;
    });
  }

  #keepMinP(share: number, temperature: number): void {
    this.#findMaximum();
    const least = Math.fround(this.#maximum + Math.log(share) * temperature);
    this.#keepIf((id) => this.#logits[id]! >= least);
  }

  #excludeTopChoices(threshold: number): void {
    const sum = this.#weigh(1);
    const reaches = (id: number) => this.#weights[id]! / sum >= threshold;
    let last = -1;
    for (const id of this.#ids) if (reaches(id) && (last < 0 || this.#byLogit(last, id) < 0)) last = id;
    if (last >= 0) this.#keepIf((id) => id === last || !reaches(id));
  }

  #dynamicTemperature(temperature: number, range: number, exponent: number): number {
    const count = this.#ids.length;
    if (count < 2) return temperature;
    const least = Math.max(0, temperature - range);
    const share = this.#entropy(this.#weigh(1)) / Math.log(count);
    return least + (temperature + range - least) * share ** exponent;
  }

  #drawMirostat(values: Float64Array, temperature: number, key: PhiloxKey): number {
    const mu = values[CHAIN.mirostatMu]!;
    if (values[CHAIN.mirostat] === 1) {
      this.#keepTopK(this.#mirostatCount(mu, temperature));
    } else {
      const least = Math.log(this.#weigh(temperature)) - mu * Math.LN2;
      const best = this.#mostProbable();
      this.#keepIf((id) => id === best || this.#scaled(id, temperature) >= least);
    }
    const token = this.#drawOne(temperature, philoxUniform(key, 0));
    const surprise = (Math.log(this.#weigh(temperature)) - this.#scaled(token, temperature)) / Math.LN2;
    values[CHAIN.mirostatMuAfter] = mu - values[CHAIN.mirostatEta]! * (surprise - values[CHAIN.mirostatTau]!);
    return token;
  }

  #mirostatCount(mu: number, temperature: number): number {
    const ids = this.#ids.slice();
    let left = ZIPF_TOKENS;
    const most = ids.subarray(
      0,
      visitInOrder(ids, this.#byLogit, () => --left > 0),
    );
    let products = 0;
    let squares = 0;
    for (let i = 0; i + 1 < most.length; i++) {
      const step = Math.log((i + 2) / (i + 1));
      products += step * (this.#scaled(most[i]!, temperature) - this.#scaled(most[i + 1]!, temperature));
      squares += step * step;
    }
    const exponent = products / squares;
    const excess = exponent - 1;
    const count = ((excess * 2 ** mu) / (1 - this.#logits.length ** -excess)) ** (1 / exponent);
    // NaN where a single token is left.
    return count < ids.length ? Math.max(1, Math.trunc(count)) : ids.length;
  }

  #drawOne(temperature: number, uniform: number): number {
    if (temperature < MIN_TEMPERATURE) return this.#mostProbable();
    const target = uniform * this.#weigh(temperature);
    let sum = 0;
    let last = this.#ids[0]!;
    for (const id of this.#ids) {
      const weight = this.#weights[id]!;
      if (weight <= 0) continue;
      last = id;
      sum += weight;
      if (sum > target) break;
    }
    return last;
  }

  #mostProbable(): number {
    return this.#ids.reduce((best, id) => (this.#byLogit(best, id) < 0 ? best : id));
  }

  #findMaximum(): void {
    let maximum = -Infinity;
    for (const id of this.#ids) if (this.#logits[id]! > maximum) maximum = this.#logits[id]!;
    this.#maximum = maximum;
  }

  /** Computes the weights of the kept tokens at this temperature, and returns their sum. */
  #weigh(temperature: number): number {
    this.#findMaximum();
    let sum = 0;
    for (const id of this.#ids) sum += this.#weights[id] = Math.exp(this.#scaled(id, temperature));
    return sum;
  }

  /** Entropy in nats of the distribution that `#weigh(1)` made. */
  #entropy(sum: number): number {
    const logSum = Math.log(sum);
    let total = 0;
    for (const id of this.#ids) total += this.#weights[id]! * (logSum - this.#scaled(id, 1));
    return total / sum;
  }

  #scaled(id: number, temperature: number): number {
    return (this.#logits[id]! - this.#maximum) / temperature;
  }

  #keepWhile(compare: (a: number, b: number) => number, visit: (id: number) => boolean): void {
    this.#ids = this.#ids.subarray(0, visitInOrder(this.#ids, compare, visit)).sort();
  }

  #keepIf(keeps: (id: number) => boolean): void {
    let count = 0;
    for (const id of this.#ids) if (keeps(id)) this.#ids[count++] = id;
    this.#ids = this.#ids.subarray(0, count);
  }
}
