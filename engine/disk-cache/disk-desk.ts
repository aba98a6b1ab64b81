import { type BlockFormat, contentBytes, type DiskKey } from './block-file.js';
import type { BlockFolder, FoundBlock } from './block-folder.js';
import type { DiskAnswer, DiskAsk, DiskReply } from './disk-messages.js';

type Write = Extract<DiskAsk, { type: 'write' }>;
type Read = Extract<DiskAsk, { type: 'read' }>;

export interface DeskOptions {
  folder: BlockFolder;
  format: BlockFormat;
  reply(reply: DiskReply): void;
}

/**
 * Does what the loop asks of a folder. A prompt waits for what is read, and no request for what is written:
 * so reads are done at once, and writes one after the other when nothing else has been asked.
 */
export class DiskDesk {
  readonly #options: DeskOptions;
  #writes: Write[] = [];

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /** Lists the folder. */
  open(): void {
    this.#reply({ type: 'listed', keys: this.#options.folder.open() });
  }

  ask(ask: DiskAsk): void {
    const { folder } = this.#options;
    if (ask.type === 'write') this.#writes.push(ask);
    else if (ask.type === 'read') this.#read(ask);
    else if (ask.type === 'used') folder.touch(ask.keys);
    else if (ask.type === 'drop') folder.drop(ask.keys);
    else if (ask.type === 'erase') {
      for (const write of this.#writes.splice(0)) this.#answerWrite(write, []);
      folder.erase();
      this.#reply({ type: 'erased' });
    } else {
      while (this.writeNext());
      this.#reply({ type: 'closed' });
    }
  }

  /** Writes the blocks of the oldest `write`. False: there is none. */
  writeNext(): boolean {
    const next = this.#writes.shift();
    if (next === undefined) return false;
    const parts = this.#partsOf(next.bytes, next.blocks);
    const written = next.blocks.filter((block, i) => this.#options.folder.write(block, parts[i]!));
    this.#answerWrite(
      next,
      written.map(({ key }) => key),
    );
    return true;
  }

  #answerWrite({ bytes }: Write, keys: DiskKey[]): void {
    const { folder } = this.#options;
    if (keys.length > 0) folder.keepToLimits();
    this.#reply({ type: 'written', numBytes: bytes.length, keys, removed: folder.takeGone() });
  }

  #read({ readId, prompt: { tokens, ...of }, blocks }: Read): void {
    const { folder, format } = this.#options;
    const size = blocks.reduce((sum, { key }) => sum + contentBytes(format, key), 0);
    const bytes = new Uint8Array(size);
    const parts = this.#partsOf(bytes, blocks);
    let found: FoundBlock = 'whole';
    let numRead = 0;
    for (; numRead < blocks.length; numRead++) {
      const { key, length } = blocks[numRead]!;
      found = folder.read({ ...of, tokens: tokens.subarray(0, length) }, key, parts[numRead]!);
      if (found !== 'whole') break;
    }
    const end = numRead === blocks.length ? size : parts[numRead]!.byteOffset;
    const removed = folder.takeGone();
    if (found === 'other') removed.push(blocks[numRead]!.key);
    const isDamaged = found === 'damaged';
    this.#reply({ type: 'read', readId, bytes: bytes.subarray(0, end), isDamaged, removed });
  }

  /** The parts of contents that lie one after the other. */
  #partsOf(bytes: Uint8Array, blocks: readonly { key: DiskKey }[]): Uint8Array[] {
    let start = 0;
    return blocks.map(({ key }) => {
      const part = bytes.subarray(start, start + contentBytes(this.#options.format, key));
      start += part.length;
      return part;
    });
  }

  #reply(answer: DiskAnswer): void {
    this.#options.reply({ ...answer, usage: this.#options.folder.usage });
  }
}
