import { SkeinError } from '../../base/skein-error.js';

/** Bounds of what a hub may say of a repository. */
export const HUB_LIMITS = {
  /** Bytes of one answer, decoded: a page of a list of files has some hundred kilobytes. */
  answerBytes: 16 * 1024 * 1024,
  /** Milliseconds of one answer. */
  answerMs: 30_000,
  /** Files of a repository. */
  files: 50_000,
} as const;

const COMMIT = /^[0-9a-f]{40}$/;
const HASHES = { git: /^[0-9a-f]{40}$/, sha256: /^[0-9a-f]{64}$/ } as const;

/** A fetch whose answers have a bounded size and time, however a server stretches them. */
export function boundedHubFetch(
  fetchWith: typeof fetch,
  signal: AbortSignal | undefined,
  { answerBytes, answerMs }: { answerBytes: number; answerMs: number } = HUB_LIMITS,
): typeof fetch {
  return async (input, init) => {
    const timed = AbortSignal.timeout(answerMs);
    const response = await fetchWith(input, {
      ...init,
      signal: signal === undefined ? timed : AbortSignal.any([timed, signal]),
    });
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    let bytes = 0;
    const counted = body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          bytes += chunk.byteLength;
          if (bytes <= answerBytes) controller.enqueue(chunk);
          else controller.error(new UnfitAnswer(`its answer is longer than ${answerBytes} bytes`));
        },
      }),
    );
    return new Response(counted, { status, statusText, headers });
  };
}

/** An answer that no hub gives, as a clause. Another attempt would not change it. */
export class UnfitAnswer extends SkeinError {
  override name = 'UnfitAnswer';
  override readonly code = 'SKEIN_HUB_ANSWER';
}

/** A commit as it names a folder of the cache. @throws UnfitAnswer */
export function checkedCommit(sha: unknown): string {
  if (typeof sha === 'string' && COMMIT.test(sha)) return sha;
  throw new UnfitAnswer('its answer has no commit of 40 hexadecimal digits');
}

/** A hash as it names a file of the cache. @throws UnfitAnswer */
export function checkedHash(algorithm: keyof typeof HASHES, value: unknown, path: string): string {
  if (typeof value === 'string' && HASHES[algorithm].test(value)) return value;
  throw new UnfitAnswer(`its answer has no ${algorithm} hash of the file ${JSON.stringify(path)}`);
}

/** @throws UnfitAnswer */
export function checkedSize(size: unknown, path: string): number {
  if (Number.isSafeInteger(size) && (size as number) >= 0) return size as number;
  throw new UnfitAnswer(`its answer has no size of the file ${JSON.stringify(path)}`);
}
