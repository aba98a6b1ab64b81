import type { TowerPicture } from '../../callbacks/tower-messages.js';
import { hasPlaces, placesOf } from '../../models/towers/picture-places.js';
import type { TowerConfig } from '../../models/towers/tower-config.js';
import { PLACES_OF_TOKEN } from '../../network/plan.js';
import { type RopeFrequencies, ropeFrequencies } from '../../network/rope.js';
import { PackedArrays } from '../batch/packed-arrays.js';
import { RopeTable } from '../batch/rope-table.js';

/** Block size of towers, as of encoders. */
export const TOWER_TOKENS_PER_BLOCK = 32;

/** Most rows and sequences of a batch. */
export interface TowerBatchLimits {
  /** Patches, and the tower's own rows. */
  maxRows: number;
  maxPictures: number;
}

/** Number of blocks that suffices for any batch within the limits: each picture begins at a block of its own. */
export function towerBlocks({ maxRows, maxPictures }: TowerBatchLimits): number {
  return Math.ceil(maxRows / TOWER_TOKENS_PER_BLOCK) + maxPictures;
}

/**
 * Whole pictures, packed one after the other: each is a sequence of its patches, which attend both ways. As in an encoder's batch no cache
 * outlives it. The rows of logits are the first patches of the squares that become rows of the output.
 */
export class TowerBatch extends PackedArrays {
  readonly rowInputs: Float32Array;
  readonly tokenTypes: Int32Array;
  readonly gridPositions: Int32Array;
  readonly places?: Int32Array;
  readonly placeShares?: Float32Array;
  readonly segments?: Int32Array;
  readonly #config: TowerConfig;

  constructor(config: TowerConfig, { maxRows, maxPictures }: TowerBatchLimits) {
    super(
      {
        tokens: maxRows,
        sequences: maxPictures,
        logitRows: maxRows,
        maxBlocksPerSequence: Math.ceil(maxRows / TOWER_TOKENS_PER_BLOCK),
        newBlocks: maxPictures,
      },
      new RopeTable(frequenciesOf(config), null, maxPictures),
    );
    this.#config = config;
    this.rowInputs = new Float32Array(maxRows * config.patchWidth);
    this.tokenTypes = new Int32Array(maxRows);
    this.gridPositions = new Int32Array(2 * maxRows);
    if (config.windows !== undefined) this.segments = new Int32Array(2 * maxRows);
    if (!hasPlaces(config)) return;
    this.places = new Int32Array(maxRows * PLACES_OF_TOKEN);
    this.placeShares = new Float32Array(maxRows * PLACES_OF_TOKEN);
  }

  /** Replaces the batch's content. The pictures must be within the limits, with grids that the tower sees. */
  pack(pictures: readonly TowerPicture[]): void {
    this.clear();
    let block = 0;
    for (const picture of pictures) block = this.#add(picture, block);
    this.numNewBlocks = this.numSequences;
  }

  /** @returns the first block after the picture's blocks */
  #add({ patches, grid }: TowerPicture, firstBlock: number): number {
    const index = this.numSequences++;
    const begin = this.numTokens;
    const own = placesOf(this.#config, grid);
    const { length } = own;
    const numBlocks = Math.ceil(length / TOWER_TOKENS_PER_BLOCK);
    this.#copyPatches(patches, own.patches, begin);
    this.positions.set(own.positions, begin);
    this.tokenTypes.set(own.types, begin);
    this.gridPositions.set(own.grid, 2 * begin);
    if (own.places !== null) {
      this.places!.set(own.places, PLACES_OF_TOKEN * begin);
      this.placeShares!.set(own.shares!, PLACES_OF_TOKEN * begin);
    }
    if (own.segments !== null) this.segments!.set(own.segments, 2 * begin);
    this.tokenIds.fill(0, begin, begin + length);
    for (let i = 0; i < length; i++) this.slots[begin + i] = firstBlock * TOWER_TOKENS_PER_BLOCK + i;
    for (let i = 0; i < numBlocks; i++) this.blockTables[index * this.maxBlocks + i] = firstBlock + i;
    this.numTokens = begin + length;
    this.queryStart[index + 1] = this.numTokens;
    this.contextLength[index] = length;
    this.ropeRows[index] = 0;
    for (const row of own.squares) this.logitRows[this.numLogitRows++] = begin + row;
    this.newBlocks[index] = firstBlock + numBlocks - 1;
    return firstBlock + numBlocks;
  }

  #copyPatches(patches: Float32Array, order: Int32Array, begin: number): void {
    const { patchWidth, kind } = this.#config;
    for (const [row, patch] of order.entries()) {
      const at = (begin + row) * patchWidth;
      if (kind === 'gemma4')
        for (let i = 0; i < patchWidth; i++)
          this.rowInputs[at + i] = fromUnit(patches[patch * patchWidth + i]!);
      else if (patch < 0) this.rowInputs.fill(0, at, at + patchWidth);
      else this.rowInputs.set(patches.subarray(patch * patchWidth, (patch + 1) * patchWidth), at);
    }
  }
}

/** From [0, 1] to [-1, 1]: Gemma 4's tower does what processors of other families do. */
const fromUnit = (x: number): number => 2 * Math.fround(x - 0.5);

/** Frequencies of a patch's row, then of its column: Qwen's are the same for both, Pixtral's are the even and the odd ones of a head. */
function frequenciesOf({ kind, ropeTheta: theta, hiddenSize, numHeads }: TowerConfig): RopeFrequencies {
  if (theta === undefined) return { inverseFrequencies: new Float32Array(0), scale: 1 };
  const headDim = hiddenSize / numHeads;
  const rotaryDim = kind === 'pixtral' ? headDim : headDim / 2;
  const { inverseFrequencies: all, scale } = ropeFrequencies({ theta, rotaryDim, scaling: { type: 'none' } });
  if (kind !== 'pixtral') return { inverseFrequencies: Float32Array.of(...all, ...all), scale };
  const every = (first: number) => all.filter((_, i) => i % 2 === first);
  return { inverseFrequencies: Float32Array.of(...every(0), ...every(1)), scale };
}
