// @ts-check
// A host server: the batch manager pulls jobs from a queue.      npm install skein @huggingface/tokenizers
//
//     node queue.mjs "Once upon a time" "The little goose" ...
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Tokenizer } from '@huggingface/tokenizers';
import { cachedEngine, GptManager } from 'skein';

/** @typedef {{ id: bigint, prompt: string, maxTokens: number, deliveries: number }} Job */

/** Stands for Redis, SQS or a table: who takes a job leases it, and a job that is given back is delivered again. */
class Queue {
  /** @type {Job[]} */ #waiting = [];
  /** @type {Map<bigint, Job>} */ #leased = new Map();
  /** @type {Set<bigint>} */ #withdrawn = new Set();
  #nextId = 1n;

  /** @param {string} prompt @param {number} maxTokens */
  put(prompt, maxTokens) {
    this.#waiting.push({ id: this.#nextId++, prompt, maxTokens, deliveries: 0 });
  }

  /** @param {number} max @returns {Promise<Job[]>} */
  async take(max) {
    const jobs = this.#waiting.splice(0, max < 0 ? this.#waiting.length : max);
    for (const job of jobs) this.#leased.set(job.id, { ...job, deliveries: job.deliveries + 1 });
    return jobs;
  }

  /** The job is done with. @param {bigint} id */
  ack(id) {
    this.#leased.delete(id);
    this.#withdrawn.delete(id);
  }

  /** The job comes again, at most three times. @param {bigint} id @returns whether it does */
  giveBack(id) {
    const job = this.#leased.get(id);
    this.ack(id);
    if (job === undefined || job.deliveries >= 3) return false;
    this.#waiting.push(job);
    return true;
  }

  /** No client wants the answers any more. */
  withdrawAll() {
    this.#waiting = [];
    this.#withdrawn = new Set(this.#leased.keys());
  }

  withdrawn() {
    return new Set(this.#withdrawn);
  }

  get isEmpty() {
    return this.#waiting.length === 0 && this.#leased.size === 0;
  }
}

const demo = new URL('models/demo/gosling', import.meta.resolve('skein/package.json'));
const engine = await cachedEngine({ model: process.env.MODEL ?? fileURLToPath(demo), precision: 'auto' });
const read = (/** @type {string} */ name) => JSON.parse(readFileSync(`${engine.directory}/${name}`, 'utf8'));
const tokenizer = new Tokenizer(read('tokenizer.json'), read('tokenizer_config.json'));

const queue = new Queue();
const prompts = process.argv.length > 2 ? process.argv.slice(2) : ['Once upon a time', 'The little goose'];
for (const prompt of prompts) queue.put(prompt, 40);

/** Tokens of each answer so far. @type {Map<bigint, number[]>} */
const answers = new Map();
const events = new EventEmitter();
const allDone = once(events, 'done');

const manager = new GptManager({
  enginePath: engine.directory,
  modelType: 'InflightFusedBatching',
  maxBeamWidth: 1,
  schedulerPolicy: 'MAX_UTILIZATION',

  // At the start of an iteration: `max` is what there is room for. Jobs join the batch that runs.
  async getInferenceRequests(max) {
    const jobs = await queue.take(max);
    return jobs.map(({ id, prompt, maxTokens }) => ({
      requestId: id,
      inputs: {
        input_ids: tensor(Int32Array.from(tokenizer.encode(prompt).ids)),
        request_output_len: { shape: [1], data: Int32Array.of(maxTokens) },
        random_seed: { shape: [1], data: BigUint64Array.of(id) },
        temperature: { shape: [1], data: Float32Array.of(0.7) },
        streaming: { shape: [1], data: Uint8Array.of(1) },
      },
    }));
  },

  // At the end of an iteration: the new tokens of each request, `final` with the last ones, or with an error.
  sendResponse(requestId, outputs, final, error) {
    if (error !== '') {
      answers.delete(requestId);
      const again = queue.giveBack(requestId);
      console.error(`job ${requestId}: ${error}${again ? ' It is tried again.' : ''}`);
    } else {
      const tokens = answers.get(requestId) ?? [];
      const [ids] = outputs.filter(({ name }) => name === 'output_ids');
      tokens.push(.../** @type {Int32Array} */ (ids?.data ?? []));
      answers.set(requestId, tokens);
      if (final) {
        console.log(`job ${requestId}: ${JSON.stringify(tokenizer.decode(tokens))}`);
        answers.delete(requestId);
        queue.ack(requestId);
      }
    }
    if (queue.isEmpty) events.emit('done');
  },

  // Requests that end with this iteration, whatever they have.
  pollStopSignals: () => queue.withdrawn(),
});

/** @param {Int32Array} data */
function tensor(data) {
  return { shape: [1, data.length], data };
}

process.once('SIGINT', () => queue.withdrawAll()); // what there is of each answer is printed
await manager.ready;
await allDone;
await manager.shutdown(); // takes nothing new, and ends when nothing is active
