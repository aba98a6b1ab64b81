import type { Formation } from '../../../../../callbacks/formation.js';
import {
  type BlockCells,
  type BlockLayout,
  blocksOf,
  blocksShown,
  CACHED,
  FREE,
  fillCells,
  layoutBlocks,
  NUM_KINDS,
  SHARED,
  USED,
} from './block-map.js';
import { Picture, palette, Redraw } from './picture.js';
import type { Selection } from './selection.js';
import type { TimelineModel } from './timeline-model.js';

const COLOURS = [
  'block-free',
  'context',
  'generating',
  'block-cached',
  'block-shared',
  'ink',
  'surface',
] as const;

/** View of the pool of KV blocks and their owners. */
export class BlockView {
  readonly #model: TimelineModel;
  readonly #selection: Selection;
  readonly #picture: Picture;
  readonly #colours: () => Readonly<Record<(typeof COLOURS)[number], string>>;
  readonly #redraw = new Redraw(() => this.#draw());
  #layout: BlockLayout = layoutBlocks(0, 1, 1);
  #cells: BlockCells | null = null;
  #formation: Formation | null = null;
  /** Number of blocks on the map, from the first of the pool on. */
  #shown = 0;
  #isWhole = false;

  constructor(canvas: HTMLCanvasElement, model: TimelineModel, selection: Selection) {
    this.#model = model;
    this.#selection = selection;
    this.#picture = new Picture(canvas, () => this.#prepare());
    this.#colours = palette(COLOURS, () => this.#redraw.ask());
    selection.onChange(() => this.#redraw.ask());
    canvas.addEventListener('pointermove', (event) => selection.point(this.#at(event)));
    canvas.addEventListener('pointerleave', () => selection.point(null));
  }

  get cells(): BlockCells | null {
    return this.#cells;
  }

  get layout(): BlockLayout {
    return this.#layout;
  }

  get shown(): number {
    return this.#shown;
  }

  /** True: the whole pool is shown, however little of it is used. */
  set isWhole(isWhole: boolean) {
    this.#isWhole = isWhole;
    this.#prepare();
  }

  show(formation: Formation | null): void {
    this.#formation = formation;
    this.#prepare();
  }

  #prepare(): void {
    const { width, height } = this.#picture ?? { width: 0, height: 0 };
    const formation = this.#formation;
    if (formation === null || width === 0) this.#cells = null;
    else {
      const { count, runs } = formation.blocks;
      this.#shown = this.#isWhole ? count : blocksShown(runs, count, this.#shown);
      this.#layout = layoutBlocks(this.#shown, width, height);
      this.#cells = fillCells(runs, this.#layout, count);
    }
    this.#redraw.ask();
  }

  #draw(): boolean {
    const { context, width, height } = this.#picture;
    context.clearRect(0, 0, width, height);
    const cells = this.#cells;
    const formation = this.#formation;
    if (cells === null || formation === null) return false;
    const { columns, size, gap, blocksPerCell } = this.#layout;
    const chosen = this.#selection.id;
    const row = chosen === null ? -1 : (this.#model.track(chosen)?.row ?? -1);
    const held = row < 0 ? null : blocksOf(row, formation.blocks.runs, this.#layout);
    for (let cell = 0; cell < cells.owners.length; cell++) {
      const x = (cell % columns) * (size + gap);
      const y = Math.floor(cell / columns) * (size + gap);
      context.globalAlpha = held === null || held[cell]! > 0 ? 1 : 0.35;
      if (blocksPerCell === 1) this.#drawBlock(cells, cell, x, y);
      else this.#drawShares(cells, cell, x, y);
      if (held !== null && held[cell]! > 0) this.#outline(x, y);
    }
    context.globalAlpha = 1;
    return false;
  }

  /**
   * Draws a cell of one block. Its shape shows its kind too: used fills the cell, cached is small, shared has a hole,
   * free is faint.
   */
  #drawBlock({ counts, owners }: BlockCells, cell: number, x: number, y: number): void {
    const { context } = this.#picture;
    const { size } = this.#layout;
    const colours = this.#colours();
    const at = cell * NUM_KINDS;
    if (counts[at + USED]! > 0) {
      context.fillStyle = this.#ownerColour(owners[cell]!);
      context.fillRect(x, y, size, size);
    } else if (counts[at + SHARED]! > 0) {
      context.fillStyle = colours['block-shared'];
      context.fillRect(x, y, size, size);
      if (size < 6) return;
      const hole = Math.round(size / 3);
      context.fillStyle = colours.surface;
      context.fillRect(x + (size - hole) / 2, y + (size - hole) / 2, hole, hole);
    } else if (counts[at + CACHED]! > 0) {
      const inset = size < 6 ? 0 : Math.round(size / 5);
      context.fillStyle = colours['block-cached'];
      context.fillRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
    } else {
      context.fillStyle = colours['block-free'];
      context.fillRect(x, y, size, size);
    }
  }

  /** Draws a cell of several blocks, filled from below with each kind's share. */
  #drawShares({ counts, owners }: BlockCells, cell: number, x: number, y: number): void {
    const { context } = this.#picture;
    const { size } = this.#layout;
    const colours = this.#colours();
    const at = cell * NUM_KINDS;
    const all = counts[at + FREE]! + counts[at + USED]! + counts[at + CACHED]! + counts[at + SHARED]!;
    context.fillStyle = colours['block-free'];
    context.fillRect(x, y, size, size);
    let bottom = y + size;
    const fill = (kind: number, colour: string) => {
      const part = counts[at + kind]!;
      if (part === 0) return;
      const tall = Math.max(1, (size * part) / all);
      bottom -= tall;
      context.fillStyle = colour;
      context.fillRect(x, Math.max(y, bottom), size, tall);
    };
    fill(USED, this.#ownerColour(owners[cell]!));
    fill(SHARED, colours['block-shared']);
    fill(CACHED, colours['block-cached']);
  }

  #outline(x: number, y: number): void {
    const { context } = this.#picture;
    const { size } = this.#layout;
    context.strokeStyle = this.#colours().ink;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
  }

  /** Colour of the state of the owner's request, in two shades, so that neighbours can be told apart. */
  #ownerColour(row: number): string {
    const { context } = this.#picture;
    const colours = this.#colours();
    const request = this.#formation!.requests[row];
    if (request !== undefined && request[0] % 2 === 1) context.globalAlpha *= 0.84;
    return request?.[2] === 1 ? colours.context : colours.generating;
  }

  #at(event: PointerEvent): number | null {
    if (this.#cells === null) return null;
    const { columns, size, gap } = this.#layout;
    const column = Math.floor(event.offsetX / (size + gap));
    const cell = Math.floor(event.offsetY / (size + gap)) * columns + column;
    if (column >= columns || cell >= this.#cells.owners.length) return null;
    return this.#formation?.requests[this.#cells.owners[cell]!]?.[0] ?? null;
  }
}
