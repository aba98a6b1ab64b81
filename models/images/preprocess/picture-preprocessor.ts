import type { JsonObject } from '../../checkpoints/file-reading.js';
import { CHANNELS, type Pixels, type Size } from '../resize.js';
import { type ColourSettings, colourTable } from './colours.js';
import { type PatchGrid, type PatchLayout, patchGrid, patchWidth, putPatches } from './patch-rows.js';

/** Numbers of patches that are made in one turn: some milliseconds. */
const NUMBERS_OF_TURN = 2 ** 18;

/** Files of a checkpoint that say how its pictures are prepared. */
export interface PictureFiles {
  /** preprocessor_config.json, or `image_processor` of processor_config.json. */
  imageProcessor: JsonObject;
  /** processor_config.json; {} where there is none. */
  processor: JsonObject;
  /** config.json: sizes of the tower. */
  config: JsonObject;
  /** tokenizer_config.json: texts of tokens around a picture; {} where there is none. */
  tokenizer: JsonObject;
  /** Most patches of a picture that may have any size, whatever the files say; absent: as they say. */
  maxPatches?: number;
}

/** What a picture of some size becomes in a family of models. */
export interface FamilyPlan {
  /** Pictures that the tower sees, in the order of their patches. */
  tiles: readonly Size[];
  /**
   * What stands in the prompt in place of the picture's placeholder: texts, and numbers of rows of the tower's output, in order. [] where
   * no text goes with pictures.
   */
  prompt: readonly (string | number)[];
  /** Pixels that are held at a time on the way, without the decoded ones. */
  pixels: number;
}

/** How a family of models prepares its pictures: a file each. */
export interface PictureFamily {
  /** Everything that the tiles of given pixels depend on. */
  settings: JsonObject;
  layout: PatchLayout;
  colours: ColourSettings;
  /** @throws PictureError for a size that the model's pictures cannot have */
  plan(width: number, height: number): FamilyPlan;
  /** The tiles of the plan. */
  tiles(pixels: Pixels): Pixels[];
}

/** What a picture of some size becomes. */
export interface PicturePlan extends FamilyPlan {
  /** Patches of each tile. */
  grids: readonly PatchGrid[];
  /** Numbers of a patch. */
  rowWidth: number;
  /** Bytes that preparing it takes at a time, without the decoded picture. */
  bytes: number;
}

/** How a checkpoint's pictures are prepared, as its image processor of transformers does it (with torchvision). */
export class PicturePreprocessor {
  /** Everything that the patches of given pixels depend on. */
  readonly settings: JsonObject;
  readonly #family: PictureFamily;
  readonly #table: Float32Array;

  constructor(family: PictureFamily) {
    this.#family = family;
    this.#table = colourTable(family.colours);
    this.settings = { ...family.settings, layout: family.layout, colours: family.colours };
  }

  /** @throws PictureError for a size that the model's pictures cannot have */
  plan(width: number, height: number): PicturePlan {
    const plan = this.#family.plan(width, height);
    const { layout } = this.#family;
    const grids = plan.tiles.map((tile) => patchGrid(tile, layout.size));
    return { ...plan, grids, rowWidth: patchWidth(layout), bytes: plan.pixels * CHANNELS };
  }

  /** A decoded picture in the sizes that the tower sees: nearly all of the work. */
  tiles(pixels: Pixels): Pixels[] {
    return this.#family.tiles(pixels);
  }

  /** The tiles' patches [sum of the grids' patches x rowWidth], in the order in which the tower reads them. */
  patches(tiles: readonly Pixels[]): Float32Array {
    const { layout } = this.#family;
    const count = tiles.reduce((sum, tile) => sum + patchCount(patchGrid(tile, layout.size)), 0);
    const rows = new Float32Array(count * patchWidth(layout));
    let row = 0;
    for (const tile of tiles) for (const done of putPatches(tile, layout, this.#table, rows, row)) row = done;
    return rows;
  }

  /**
   * Writes the patches of one tile. The caller's thread has other turns in between.
   * @param rows [patches of the tile x rowWidth]
   */
  async patchesInTurns(tile: Pixels, rows: Float32Array, nextTurn: () => Promise<void>): Promise<void> {
    const { layout } = this.#family;
    const width = patchWidth(layout);
    let begun = 0;
    for (const done of putPatches(tile, layout, this.#table, rows, 0)) {
      if ((done - begun) * width < NUMBERS_OF_TURN) continue;
      begun = done;
      await nextTurn();
    }
  }
}

export function patchCount({ rows, columns }: PatchGrid): number {
  return rows * columns;
}

/** Rows of the tower's output that the prompt holds. */
export function pictureTokens({ prompt }: Pick<FamilyPlan, 'prompt'>): number {
  return prompt.reduce<number>((sum, part) => sum + (typeof part === 'number' ? part : 0), 0);
}
