import type { Browser, Page } from 'playwright-core';

/** A picture of the page, as JPEG in base64, and when it was taken, in milliseconds from the first. */
interface Frame {
  data: string;
  atMs: number;
}

/** Pictures of a page while it changes. */
export class Recording {
  readonly #frames: Frame[] = [];
  readonly #end: () => Promise<unknown>;
  #firstMs: number | null = null;

  private constructor(end: () => Promise<unknown>) {
    this.#end = end;
  }

  static async start(page: Page): Promise<Recording> {
    const devtools = await page.context().newCDPSession(page);
    const recording = new Recording(() => devtools.send('Page.stopScreencast'));
    devtools.on('Page.screencastFrame', ({ data, metadata, sessionId }) => {
      const nowMs = 1000 * (metadata.timestamp ?? 0);
      recording.#firstMs ??= nowMs;
      recording.#frames.push({ data, atMs: nowMs - recording.#firstMs });
      void devtools.send('Page.screencastFrameAck', { sessionId });
    });
    await devtools.send('Page.startScreencast', { format: 'jpeg', quality: 85 });
    return recording;
  }

  /**
   * Ends it and plays the pictures in the browser, which makes a film of them: no other program is needed.
   * @returns a WebM file
   */
  async film(browser: Browser, size: { width: number; height: number }): Promise<Buffer> {
    await this.#end();
    const page = await browser.newPage();
    const encoded = await page.evaluate(play, { frames: this.#frames, ...size });
    await page.close();
    return Buffer.from(encoded, 'base64');
  }
}

/** Runs in the browser: shows each picture at its time on a canvas, and records the canvas. */
async function play(asked: { frames: Frame[]; width: number; height: number }): Promise<string> {
  const { frames, width, height } = asked;
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const context = canvas.getContext('2d')!;
  const pictures = await Promise.all(
    frames.map(async ({ data }) =>
      createImageBitmap(await (await fetch(`data:image/jpeg;base64,${data}`)).blob()),
    ),
  );
  const options = { mimeType: 'video/webm;codecs=vp9', videoBitsPerSecond: 600_000 };
  const recorder = new MediaRecorder(canvas.captureStream(20), options);
  const parts: Blob[] = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const ended = new Promise((resolve) => {
    recorder.onstop = resolve;
  });
  recorder.start();
  const startMs = performance.now();
  for (const [index, { atMs }] of frames.entries()) {
    const waitMs = startMs + atMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    context.drawImage(pictures[index]!, 0, 0, width, height);
  }
  recorder.stop();
  await ended;
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}
