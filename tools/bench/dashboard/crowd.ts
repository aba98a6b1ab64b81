import { RawStream } from '../http/raw-stream.js';

/** Keeps a number of chats in flight: each that ends is followed by another, of another length. */
export class Crowd {
  readonly #url: string;
  readonly #lengths: () => number;
  readonly #streams: RawStream[];
  readonly #timer: NodeJS.Timeout;
  #endedFrames = 0;

  /** @param lengths tokens of the next answer. */
  constructor(url: string, size: number, lengths: () => number) {
    this.#url = url;
    this.#lengths = lengths;
    this.#streams = Array.from({ length: size }, () => this.#begin());
    this.#timer = setInterval(() => this.#replaceEnded(), 20);
  }

  get hasBegun(): boolean {
    return this.#streams.every(({ firstFrameMs }) => firstFrameMs !== null);
  }

  /** Frames so far, of which all but a few are tokens. */
  get frames(): number {
    return this.#streams.reduce((sum, { frames }) => sum + frames, this.#endedFrames);
  }

  leave(): void {
    clearInterval(this.#timer);
    for (const stream of this.#streams) stream.close();
  }

  #begin(): RawStream {
    return new RawStream(this.#url, '/v1/chat/completions', {
      messages: [
        { role: 'user', content: `Tell me everything. ${'More words. '.repeat(this.#lengths() / 4)}` },
      ],
      max_tokens: this.#lengths(),
      temperature: 1,
      stream: true,
      ignore_eos: true,
    });
  }

  #replaceEnded(): void {
    for (const [index, stream] of this.#streams.entries()) {
      if (stream.ended === null && !stream.isDone) continue;
      this.#endedFrames += stream.frames;
      stream.close();
      this.#streams[index] = this.#begin();
    }
  }
}
