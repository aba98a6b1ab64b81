import { BlockFolder, type FolderOptions } from '../../engine/disk-cache/block-folder.js';
import { DiskDesk } from '../../engine/disk-cache/disk-desk.js';
import type { DiskAsk, DiskReply, DiskStore } from '../../engine/disk-cache/disk-messages.js';

/** A store whose folder is read and written in this thread: what is asked is done when the loop looks for replies. */
export class InlineDisk implements DiskStore {
  readonly format: DiskStore['format'];
  readonly maxBytes: number;
  readonly folder: BlockFolder;
  readonly asks: DiskAsk[] = [];
  /** While true, nothing that is asked is done. */
  isStuck = false;
  readonly #desk: DiskDesk;
  readonly #replies: DiskReply[] = [];
  #numDone = 0;

  constructor(options: Omit<FolderOptions, 'onProblem'>) {
    const { identity, bytesPerBlock, bytesPerState, maxBytes } = options;
    this.format = { identity, bytesPerBlock, bytesPerState };
    this.maxBytes = maxBytes;
    const reply = (message: DiskReply) => this.#replies.push(message);
    this.folder = new BlockFolder({
      ...options,
      onProblem: (message) => reply({ type: 'problem', message }),
    });
    this.#desk = new DiskDesk({ folder: this.folder, format: this.format, reply });
    this.#desk.open();
  }

  post(ask: DiskAsk): void {
    this.asks.push(structuredClone(ask));
  }

  receive(): DiskReply | null {
    while (!this.isStuck && this.#numDone < this.asks.length) this.#desk.ask(this.asks[this.#numDone++]!);
    if (!this.isStuck) while (this.#desk.writeNext());
    return this.#replies.shift() ?? null;
  }

  wait(): void {}
}
