import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { CheckpointError } from '../../models/checkpoints/checkpoint.js';

/** Either it works or it is a CheckpointError of one line. */
export function refusesOrReads(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof CheckpointError) || !/^[^\n]+[.?]$/.test(error.message)) throw error;
  }
}

/** Reads a file with some of its bytes changed, and its end cut off, again and again; it is left as it was. */
export function readsChangedBytes(file: string, original: Buffer, read: () => unknown): void {
  const byte = fc.tuple(fc.nat(original.length - 1), fc.integer({ min: 0, max: 255 }));
  const changes = fc.array(byte, { maxLength: 6 });
  fc.assert(
    fc.property(changes, fc.nat(original.length), fc.boolean(), (bytes, length, isCut) => {
      const copy = Buffer.from(original);
      for (const [at, value] of bytes) copy[at] = value;
      writeFileSync(file, isCut ? copy.subarray(0, length) : copy);
      refusesOrReads(read);
    }),
    { numRuns: 600 },
  );
  writeFileSync(file, original);
}
