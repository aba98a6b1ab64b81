import type { RecordStore, StoredRecord } from './record-store.js';

/** Records of this process alone. */
export class MemoryRecords implements RecordStore {
  readonly #records = new Map<string, StoredRecord>();
  #revision = 0;

  async get(key: string): Promise<StoredRecord | null> {
    return this.#records.get(key) ?? null;
  }

  async put(key: string, text: string, revision: number): Promise<number | null> {
    if ((this.#records.get(key)?.revision ?? 0) !== revision) return null;
    return this.set(key, text);
  }

  /** Writes a record, whatever was there. @returns its revision */
  set(key: string, text: string): number {
    const revision = ++this.#revision;
    this.#records.set(key, { key, text, revision });
    return revision;
  }

  async remove(key: string): Promise<boolean> {
    return this.#records.delete(key);
  }

  async list(words = ''): Promise<StoredRecord[]> {
    const all = [...this.#records.values()];
    return words === '' ? all : all.filter(({ key }) => key.startsWith(`${words}.`));
  }
}
