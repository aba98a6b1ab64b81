import { addressSpace, MemoryError, memoryProblem } from '../../../base/address-space.js';
import { messageOf } from '../../../base/error-text.js';

/** The used part of the global WebAssembly, whose types come with those of browsers. */
interface WebAssemblyOfNode {
  Memory: new (size: { initial: number }) => object;
  validate(bytes: Uint8Array): boolean;
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: object) => { readonly exports: object };
}

export const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyOfNode }).WebAssembly;

/**
 * Checks that a memory of WebAssembly can be opened if addresses are limited, before a library tries: the library's message
 * is no sentence. Trying is the only way to know, since Node.js may be set to reserve less. @throws
 * MemoryError
 */
export function requireMemory(): void {
  if (addressSpace() === null) return;
  try {
    new webAssembly.Memory({ initial: 1 });
  } catch (error) {
    throw new MemoryError(memoryProblem(error) ?? messageOf(error), { cause: error });
  }
}
