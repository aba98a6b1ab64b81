import { createWriteStream, renameSync, rmSync, statSync, type WriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { setTimeout } from 'node:timers/promises';
import { SkeinError } from '../../base/skein-error.js';
import { writeProblem } from '../../base/system-problem.js';
import { HubError } from '../errors/user-errors.js';
import { type Checksum, hasChecksum } from './checksum.js';

export interface Download {
  /** Name of the file in errors: ORG/NAME/path. */
  name: string;
  url: string;
  /** Size of the file, in bytes. */
  size: number;
  checksum: Checksum;
  headers: Readonly<Record<string, string>>;
}

export interface DownloadOptions {
  fetch: typeof fetch;
  /**
   * Called often, with the number of this file's bytes that are here; it falls where the file starts over.
   */
  onBytes: (bytes: number) => void;
  signal?: AbortSignal | undefined;
  /** Wait before the second attempt; each further wait is twice as long. */
  retryDelayMs?: number;
  /** Milliseconds without a byte after which the connection is given up. */
  stallLimitMs?: number;
}

/** Attempts in a row without a new byte, after which the download fails. */
const MAX_VAIN_ATTEMPTS = 5;
const MAX_DELAY_MS = 30_000;
const DEFAULTS = { retryDelayMs: 1_000, stallLimitMs: 60_000 };

/** An error that may pass: another attempt is made. */
class Passing extends SkeinError {
  override name = 'Passing';
  override readonly code = 'SKEIN_HUB_PASSING';
  constructor(
    message: string,
    readonly retryAfterMs = 0,
  ) {
    super(message);
  }
}

/**
 * Downloads a file to `target`, which appears by one rename once its checksum is right. Bytes received stay
 * next to it under the name .incomplete whatever happens, so that the next attempt, or the next call,
 * continues there.
 * @throws HubError.
 */
export async function download(source: Download, target: string, options: DownloadOptions): Promise<void> {
  const part = `${target}.incomplete`;
  for (let mismatches = 0; ; mismatches++) {
    await fetchAll(source, part, options);
    if (await hasChecksum(part, source.size, source.checksum)) break;
    rmSync(part, { force: true });
    if (mismatches === 1)
      throw new HubError(
        `${source.name} came twice with other contents than the hub says it has (${source.checksum.algorithm} ${source.checksum.value}); nothing of it was kept.`,
      );
  }
  renameSync(part, target);
}

async function fetchAll(source: Download, part: string, options: DownloadOptions): Promise<void> {
  const { retryDelayMs, stallLimitMs } = { ...DEFAULTS, ...options };
  let vain = 0;
  for (;;) {
    const before = bytesOf(part, source.size);
    options.onBytes(before);
    if (before === source.size && source.size > 0) return;
    try {
      await fetchRest(source, part, before, { ...options, stallLimitMs });
      if (bytesOf(part, source.size) === source.size) return;
      throw new Passing('it ended early');
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!(error instanceof Passing)) throw error;
      vain = bytesOf(part, source.size) > before ? 1 : vain + 1;
      if (vain === MAX_VAIN_ATTEMPTS) {
        throw new HubError(
          `${source.name} could not be downloaded in ${vain} attempts (${error.message}); what has come is kept, and the same command goes on from there.`,
        );
      }
      const delay = Math.max(error.retryAfterMs, retryDelayMs * 2 ** (vain - 1));
      await setTimeout(Math.min(MAX_DELAY_MS, delay), undefined, { signal: options.signal });
    }
  }
}

/** Number of bytes already here; a file longer than it should be is dropped. */
function bytesOf(part: string, size: number): number {
  const bytes = statSync(part, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes <= size) return bytes;
  rmSync(part, { force: true });
  return 0;
}

async function fetchRest(
  { name, url, headers, size }: Download,
  part: string,
  start: number,
  { fetch, onBytes, signal, stallLimitMs }: DownloadOptions & { stallLimitMs: number },
): Promise<void> {
  const stalled = new AbortController();
  const watch = globalThis.setTimeout(() => stalled.abort(), stallLimitMs);
  const signals = AbortSignal.any([stalled.signal, ...(signal === undefined ? [] : [signal])]);
  try {
    const range = start === 0 ? {} : { range: `bytes=${start}-` };
    const response = await fetch(url, { headers: { ...headers, ...range }, signal: signals });
    const body = bodyOf(response, name);
    // A server without ranges sends the whole file again.
    const isRest = response.status === 206;
    let bytes = isRest ? start : 0;
    const count = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        if (bytes > size)
          throw new HubError(`${name} is longer than the ${size} bytes that the hub says it has.`);
        watch.refresh();
        onBytes(bytes);
        yield chunk;
      }
    };
    const file = createWriteStream(part, { flags: isRest ? 'a' : 'w' });
    try {
      await pipeline(Readable.fromWeb(body), count, file, { signal: signals });
    } finally {
      await closed(file);
    }
  } catch (error) {
    throw problemOf(error, { name, part, isStalled: stalled.signal.aborted });
  } finally {
    clearTimeout(watch);
  }
}

/**
 * Waits until a file is closed. A pipeline that fails does not: a write may still be under way, and the next attempt would
 * measure the file without its bytes.
 */
async function closed(file: WriteStream): Promise<void> {
  if (!file.closed) await new Promise<void>((resolve) => file.once('close', resolve));
}

function bodyOf({ status, headers, body }: Response, name: string): ReadableStream {
  if ((status === 200 || status === 206) && body !== null) return body as ReadableStream;
  void body?.cancel().catch(() => {});
  const retryAfter = Number(headers.get('retry-after'));
  if (status === 429 || status >= 500)
    throw new Passing(`the hub answers ${status}`, 1000 * (retryAfter || 0));
  throw new HubError(`${name} cannot be downloaded: the hub answers ${status}.`);
}

/** Makes the error of a failed attempt: a fault of this machine is final, one of the network may pass. */
function problemOf(
  error: unknown,
  { name, part, isStalled }: { name: string; part: string; isStalled: boolean },
): Error {
  if (error instanceof HubError || error instanceof Passing) return error;
  if (isStalled) return new Passing('nothing came any more');
  const { code, message, cause } = error as NodeJS.ErrnoException & { cause?: Error };
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new HubError(
      `${name} does not fit: the disk of ${part} is full. Make room, or set HF_HUB_CACHE to a folder of another disk; the same command then goes on.`,
    );
  }
  if (['EACCES', 'EPERM', 'EROFS', 'EIO'].includes(code ?? ''))
    return new HubError(`${part} cannot be written: ${writeProblem(error)}`);
  return new Passing(cause?.message ?? message);
}
