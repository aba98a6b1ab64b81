import { readFileSync } from 'node:fs';
import { codeOf, SkeinError } from './skein-error.js';

/**
 * Bytes of addresses that a thread of Node.js takes. V8 reserves 620 MB for its code and stacks before it uses any of
 * them, and ends the whole process if it cannot have them. The rest is for the heap.
 */
const THREAD_BYTES = 800e6;
const PAGE_BYTES = 4096;

/** An error for memory, or addresses of memory, that the system refuses to a process. */
export class MemoryError extends SkeinError {
  override name = 'MemoryError';
  override readonly code = 'SKEIN_MEMORY';
}

/** Bytes of addresses that this process may have, and those that it has. */
export interface AddressSpace {
  limit: number;
  used: number;
}

/** The limit set by `ulimit -v` and the addresses used; null where there is no limit. */
export function addressSpace(): AddressSpace | null {
  if (process.platform !== 'linux') return null;
  try {
    const limit = Number(/^Max address space +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]);
    if (Number.isNaN(limit)) return null; // unlimited
    return { limit, used: Number.parseInt(readFileSync('/proc/self/statm', 'latin1'), 10) * PAGE_BYTES };
  } catch {
    return null;
  }
}

/** Checks the room for threads, before they are started. @throws MemoryError where they would end the process for want of addresses. */
export function requireThreadRoom(threads = 1, space: AddressSpace | null = addressSpace()): void {
  if (space === null || space.limit - space.used >= threads * THREAD_BYTES) return;
  const left = gigabytes(Math.max(0, space.limit - space.used));
  const needed = gigabytes(threads * THREAD_BYTES);
  throw new MemoryError(
    `${threads === 1 ? 'A thread needs' : `${threads} threads need`} ${needed} of address space, and of the ${gigabytes(space.limit)} that this process may have ${left} are left; raise the limit (ulimit -v).`,
  );
}

/**
 * Patterns of messages by which JavaScript engines and Node.js refuse memory, with what could not be had: most have no
 * code.
 */
const REFUSED: readonly [RegExp, string][] = [
  [
    /Cannot allocate Wasm memory|WebAssembly\.Memory\(\)/,
    'Memory for WebAssembly, which reserves 10 GB of addresses,',
  ],
  [/WebAssembly.*Out of memory/i, 'Memory for WebAssembly'],
  [/Array buffer allocation failed|Invalid (typed )?array buffer length/i, 'Memory for a buffer'],
  [/ERR_WORKER_OUT_OF_MEMORY|reached heap limit|ERR_WORKER_INIT_FAILED/, 'Memory for a thread'],
  [/\bENOMEM\b|Cannot allocate memory/, 'Memory'],
];

/** Makes a sentence of an error by which JavaScript or the system refuses memory; null for any other error. */
export function memoryProblem(error: unknown): string | null {
  if (!(error instanceof Error) || error instanceof MemoryError) return null;
  // Sentences of this package are not matched: only the cause of such an error is foreign.
  if (codeOf(error) !== null) return memoryProblem(error.cause);
  if (error.cause !== undefined) return memoryProblem(error.cause) ?? refusedMemory(error);
  return refusedMemory(error);
}

function refusedMemory(error: Error): string | null {
  const text = `${(error as NodeJS.ErrnoException).code ?? ''} ${error.message}`;
  const refused = REFUSED.find(([pattern]) => pattern.test(text));
  if (refused === undefined) return null;
  const space = addressSpace();
  const reason =
    space === null
      ? 'memory or addresses may be limited (ulimit -v, a container)'
      : `its address space is limited to ${gigabytes(space.limit)}, ${gigabytes(space.used)} of which are in use (ulimit -v)`;
  return `${refused[1]} could not be had by this process: ${reason}.`;
}

/** Decimal, as files and rates have it: "1.5 GB". */
export function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
