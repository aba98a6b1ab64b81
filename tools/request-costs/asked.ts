import { request } from 'node:http';

/** A request that is sent, and what of it the measuring waits for. */
export interface Exchange {
  status: number;
  /** Resolves at the end of the answer, or when it was left. */
  ended: Promise<string>;
  /** Goes away in the middle of the answer. */
  leave(): void;
}

/** Called with each piece of an answer's body as it comes. */
export type OnBytes = () => void;

/** Sends a body, or a GET where it is null, and resolves with the first byte of the answer's body. */
export function send(
  url: string,
  path: string,
  body: string | Buffer | null,
  onBytes: OnBytes = () => {},
  contentEncoding?: string,
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(body !== null && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
      ...(contentEncoding !== undefined && { 'content-encoding': contentEncoding }),
    };
    const method = body === null ? 'GET' : 'POST';
    const sent = request(new URL(path, url), { method, headers, agent: false }, (response) => {
      let beginning = '';
      const ended = new Promise<string>((end) => response.once('close', () => end(beginning)));
      const leave = () => void response.destroy();
      const begun = () => resolve({ status: response.statusCode!, ended, leave });
      response.once('close', begun).on('error', () => {});
      response.on('data', (bytes: Buffer) => {
        if (beginning.length < 2000) beginning += bytes.toString('latin1', 0, 2000);
        begun();
        onBytes();
      });
    });
    sent.once('error', reject);
    sent.end(body ?? undefined);
  });
}

/** A client that streams tokens, one answer after the other. */
export class Neighbour {
  #isOver = false;
  readonly #url: string;
  readonly #body: Readonly<Record<string, unknown>>;
  #exchange: Exchange | null = null;
  #lastMs = 0;
  #gapMs = 0;
  readonly #running: Promise<void>;

  constructor(url: string, model: string, maxSeqLen: number) {
    this.#url = url;
    const max_tokens = Math.floor(0.9 * maxSeqLen);
    this.#body = { model, prompt: 'Once', max_tokens, ignore_eos: true, stream: true, priority: 1 };
    this.#running = this.#run();
  }

  /** The longest time between two pieces of an answer since this was asked the last time, in milliseconds of the clock. */
  takeGap(): number {
    const gap = this.#gapMs;
    this.#gapMs = 0;
    // Time in which this program itself was busy before is not counted as a gap.
    this.#lastMs = Math.max(this.#lastMs, performance.now());
    return gap;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#exchange?.leave();
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let seed = 0; !this.#isOver; seed++) {
      const body = JSON.stringify({ ...this.#body, seed });
      this.#lastMs = Number.POSITIVE_INFINITY;
      this.#exchange = await send(this.#url, '/v1/completions', body, () => this.#note());
      if (this.#exchange.status !== 200)
        throw new Error(`The neighbour was refused: ${await this.#exchange.ended}`);
      await this.#exchange.ended;
    }
  }

  #note(): void {
    const now = performance.now();
    this.#gapMs = Math.max(this.#gapMs, now - this.#lastMs);
    this.#lastMs = now;
  }
}
