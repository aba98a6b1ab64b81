import { InferError } from '../../../callbacks/infer/infer-error.js';
import { LONGEST_NAME } from '../../../callbacks/infer/request-limits.js';
import { malformed } from '../infer-failure.js';
import { RegionFile } from './region-file.js';

export interface SharedMemoryLimits {
  /** Regions that may be registered at once. */
  maxRegions: number;
  /** Bytes of one region. */
  maxRegionBytes: number;
  /** Bytes of all of them. */
  maxBytes: number;
}

/** A region as its client registers it. */
export interface RegionStatus {
  name: string;
  /** Of the object of shared memory. */
  key: string;
  /** Where in the object it begins. */
  offset: number;
  byteSize: number;
}

/** A part of a region, for one tensor. It keeps the region until it is released. */
export interface SharedSpan {
  readonly region: string;
  /** Where in the region it begins. */
  readonly offset: number;
  readonly byteSize: number;
  /** @throws InferError where the object has become shorter */
  read(): Promise<Uint8Array>;
  /** Writes an output, which may be shorter. @throws InferError where it is longer */
  write(output: string, data: Uint8Array): Promise<void>;
  release(): void;
}

interface Region extends RegionStatus {
  file: RegionFile;
  /** Spans that have not been released. */
  users: number;
}

/**
 * Regions of shared memory that clients on this machine have registered: tensors lie there instead of in requests and answers. Words are
 * Triton's, whose clients know them. Source: the system shared memory extension of the protocol.
 *
 *   register(name, key, offset, bytes) -> span(name, offset, bytes) -> read / write -> release -> unregister(name)
 */
export class SharedRegions {
  readonly #limits: SharedMemoryLimits;
  readonly #regions = new Map<string, Region>();
  /** Those that are being opened. */
  readonly #opening = new Map<string, RegionStatus>();

  constructor(limits: SharedMemoryLimits) {
    this.#limits = limits;
  }

  /** @throws InferError */
  async register({ name, key, offset, byteSize }: RegionStatus): Promise<void> {
    const status = { name, key, offset, byteSize };
    if (name === '' || name.length > LONGEST_NAME) {
      throw malformed("'region name' is necessary to register system shared memory region");
    }
    if (this.#regions.has(name) || this.#opening.has(name)) {
      throw new InferError(`shared memory region '${name}' already in manager`, 'exists');
    }
    this.#checkLimits(status);
    this.#opening.set(name, status);
    try {
      const file = await RegionFile.open(name, key, offset + byteSize);
      this.#regions.set(name, { ...status, file, users: 0 });
    } finally {
      this.#opening.delete(name);
    }
  }

  /**
   * Regions that are registered, or the one of this name. @throws InferError notFound where no region has it
   */
  status(name = ''): readonly RegionStatus[] {
    const all = Array.from(this.#regions.values(), ({ name: own, key, offset, byteSize }) => ({
      name: own,
      key,
      offset,
      byteSize,
    }));
    const found = name === '' ? all : all.filter((region) => region.name === name);
    if (name === '' || found.length > 0) return found;
    throw new InferError(`Unable to find system shared memory region: '${name}'`, 'notFound');
  }

  /** Forgets a region, or with '' all; one that requests still use is closed after them. */
  unregister(name = ''): void {
    const leaving = name === '' ? [...this.#regions.values()] : [this.#regions.get(name)];
    for (const region of leaving) {
      if (region === undefined) continue;
      this.#regions.delete(region.name);
      closeUnused(region, this.#regions);
    }
  }

  /** A part of a region. @throws InferError where no region has this name, or it is not so long */
  span(name: string, offset: number, byteSize: number): SharedSpan {
    const region = this.#regions.get(name);
    if (region === undefined) {
      throw new InferError(`Unable to find shared memory region: '${name}'`, 'notFound');
    }
    if (offset >= region.byteSize) throw malformed(`Invalid offset for shared memory region: '${name}'`);
    if (offset + byteSize > region.byteSize) {
      throw malformed(`Invalid offset + byte size for shared memory region: '${name}'`);
    }
    region.users++;
    let isHeld = true;
    const at = region.offset + offset;
    return {
      region: name,
      offset,
      byteSize,
      read: async () => {
        const bytes = new Uint8Array(byteSize);
        await region.file.read(bytes, at);
        return bytes;
      },
      write: async (output, data) => {
        if (data.length > byteSize) throw tooLong(output, byteSize, data.length);
        await region.file.write(data, at);
      },
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        region.users--;
        closeUnused(region, this.#regions);
      },
    };
  }

  #checkLimits({ name, offset, byteSize }: RegionStatus): void {
    const { maxRegions, maxRegionBytes, maxBytes } = this.#limits;
    const isRange =
      Number.isSafeInteger(offset) && offset >= 0 && Number.isSafeInteger(byteSize) && byteSize > 0;
    if (!isRange || !Number.isSafeInteger(offset + byteSize)) {
      throw malformed(`failed to register shared memory region '${name}': invalid args`);
    }
    const all = [...this.#regions.values(), ...this.#opening.values()];
    if (all.length >= maxRegions) {
      throw malformed(
        `failed to register shared memory region '${name}': there are ${all.length} regions, which is the limit (--max-shared-memory-regions)`,
      );
    }
    if (byteSize > maxRegionBytes) {
      throw malformed(
        `failed to register shared memory region '${name}': it has ${byteSize} bytes; at most ${maxRegionBytes} are taken (--max-shared-memory-region-bytes)`,
      );
    }
    const sum = all.reduce((bytes, region) => bytes + region.byteSize, byteSize);
    if (sum > maxBytes) {
      throw malformed(
        `failed to register shared memory region '${name}': all regions would have ${sum} bytes; at most ${maxBytes} are taken (--max-shared-memory-bytes)`,
      );
    }
  }
}

/** Closes the object of a region that is neither used nor registered any more. */
function closeUnused(region: Region, registered: ReadonlyMap<string, Region>): void {
  if (region.users > 0 || registered.get(region.name) === region) return;
  region.file.close().catch(() => {}); // not awaited, and nothing was lost
}

function tooLong(output: string, has: number, needs: number): InferError {
  return new InferError(
    `shared memory size specified with the request for output '${output}' (${has} bytes) should be at least ${needs} bytes to hold the results`,
    'internal',
  );
}
