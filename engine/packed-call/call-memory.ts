import type { MemoryRegion } from '../../base/columns.js';
import { type CallPlace, HEADER_LENGTH } from './call-header.js';
import { type CallLimits, outputCounts, packedCounts, samplingCounts } from './call-limits.js';
import { PACKED_TABLE } from './packed-batch.js';
import { OUTPUT_TABLE, SAMPLING_TABLE } from './sampling-batch.js';

/**
 * Size of a cache line: each part begins at one of its own, so that writing one part does not slow down writing the
 * next.
 */
const LINE_BYTES = 64;

/**
 * One call of the executor in one piece of memory: the batch, its sampling parameters, and the results. Any thread or process
 * that knows the limits and has the memory finds everything at the same place.
 *
 *   header | tokenIds positions ... ropeRows | seed temperature ... | tokens topStart ...
 *   counts | batch                           | sampling             | output
 *
 * Rare data of no fixed size are left out: tables of prompts, biases, masks, drafts' logits and returned rows. Columns that
 * grow (banned tokens, histories, most probable tokens) are in it as long as they have room there; then they become arrays of
 * their own. Angles are one table for all calls (RopeTable), and are left out too.
 */
export class CallMemory {
  readonly limits: CallLimits;
  /** Counts of the call, see CALL_HEADER. */
  readonly header: Int32Array;
  readonly batch: CallPlace;
  readonly sampling: CallPlace;
  readonly output: MemoryRegion;

  /** Number of bytes of a call within these limits. */
  static sizeOf(limits: CallLimits): number {
    return layoutOf(limits).bytes;
  }

  /** Throws a RangeError if the memory is too small. Writes nothing into it. */
  constructor(buffer: ArrayBufferLike, limits: CallLimits) {
    const { batch, sampling, output, bytes } = layoutOf(limits);
    if (buffer.byteLength < bytes) {
      throw new RangeError(
        `The memory of a packed call has ${buffer.byteLength} bytes, but ${bytes} are needed for ${limits.tokens} tokens of ` +
          `${limits.sequences} sequences.`,
      );
    }
    this.limits = limits;
    this.header = new Int32Array(buffer, 0, HEADER_LENGTH);
    this.batch = { header: this.header, region: { buffer, byteOffset: batch } };
    this.sampling = { header: this.header, region: { buffer, byteOffset: sampling } };
    this.output = { buffer, byteOffset: output };
  }
}

/** Begin of each part, and end of the last one. */
function layoutOf(limits: CallLimits) {
  const { logitRows, history } = limits;
  const batch = wholeLines(HEADER_LENGTH * Int32Array.BYTES_PER_ELEMENT);
  const sampling = wholeLines(batch + PACKED_TABLE.byteLength(packedCounts(limits)));
  const output = wholeLines(sampling + SAMPLING_TABLE.byteLength(samplingCounts(logitRows, history)));
  return { batch, sampling, output, bytes: output + OUTPUT_TABLE.byteLength(outputCounts(logitRows)) };
}

function wholeLines(bytes: number): number {
  return Math.ceil(bytes / LINE_BYTES) * LINE_BYTES;
}
