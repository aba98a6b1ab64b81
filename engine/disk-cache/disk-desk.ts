import type { PromptBlocks } from '../../kvcache/block-hashes.js';
import type { BlockFolder } from './block-folder.js';
import type { DiskAnswer, DiskAsk, DiskReply, WrittenBlock } from './disk-messages.js';

type Write = Extract<DiskAsk, { type: 'write' }>;
type Read = Extract<DiskAsk, { type: 'read' }>;

export interface DeskOptions {
  folder: BlockFolder;
  bytesPerBlock: number;
  reply(reply: DiskReply): void;
}

/**
 * Does what the loop asks of a folder. A prompt waits for what is read, and nobody for what is written: so reads are done at once, and
 * writes one after the other when nothing else has been asked.
 */
export class DiskDesk {
  readonly #options: DeskOptions;
  #writes: Write[] = [];

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /** Lists the folder. */
  open(): void {
    this.#reply({ type: 'listed', hashes: this.#options.folder.open() });
  }

  ask(ask: DiskAsk): void {
    const { folder } = this.#options;
    if (ask.type === 'write') this.#writes.push(ask);
    else if (ask.type === 'read') this.#read(ask);
    else if (ask.type === 'used') folder.touch(ask.hashes);
    else if (ask.type === 'erase') {
      for (const { blocks } of this.#writes.splice(0)) this.#answerWrite(blocks, []);
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
    const { folder, bytesPerBlock } = this.#options;
    const { blocks, bytes } = next;
    const written = blocks.filter((block, i) =>
      folder.write(block, bytes.subarray(i * bytesPerBlock, (i + 1) * bytesPerBlock)),
    );
    this.#answerWrite(
      blocks,
      written.map(({ hash }) => hash),
    );
    return true;
  }

  #answerWrite(blocks: readonly WrittenBlock[], hashes: number[]): void {
    const removed = hashes.length === 0 ? [] : this.#options.folder.makeRoom();
    this.#reply({ type: 'written', numBlocks: blocks.length, hashes, removed });
  }

  #read({ readId, prompt, first, hashes }: Read): void {
    const { folder, bytesPerBlock } = this.#options;
    const bytes = new Uint8Array(hashes.length * bytesPerBlock);
    const numRead = countWhile(hashes, (hash, i) =>
      folder.read(
        chainUpTo(prompt, first + i, hashes.length + first),
        hash,
        bytes.subarray(i * bytesPerBlock, (i + 1) * bytesPerBlock),
      ),
    );
    const removed = hashes.slice(numRead, numRead + 1);
    this.#reply({ type: 'read', readId, bytes: bytes.subarray(0, numRead * bytesPerBlock), removed });
  }

  #reply(answer: DiskAnswer): void {
    this.#options.reply({ ...answer, usage: this.#options.folder.usage });
  }
}

/** The tokens up to the end of a block, where the prompt ends with block `numBlocks` - 1. */
function chainUpTo({ tokens, ...key }: PromptBlocks, block: number, numBlocks: number): PromptBlocks {
  return { ...key, tokens: tokens.subarray(0, ((block + 1) * tokens.length) / numBlocks) };
}

function countWhile<T>(list: readonly T[], holds: (one: T, index: number) => boolean): number {
  const index = list.findIndex((one, i) => !holds(one, i));
  return index < 0 ? list.length : index;
}
