import type { NatsRecords } from '../../cluster/nats/nats-records.js';
import type { QuotaRecords } from '../server/web/quotas/quota-records.js';

/** Share of a limit that a gateway draws at once: as much of it may lie idle at each of the others, and is lost with one that dies. */
const SLICE = 1 / 20;

/** The last write of this gateway: by its times, and by that of the NATS server, its clock is known. */
interface Written {
  key: string;
  revision: number;
  /** Of this machine's clock, between the question and the answer. */
  atMs: number;
}

/**
 * The records of keys in a bucket that gateways share. Windows go by the clock of the NATS server, as far as the time of an exchange with
 * it: the time that the server has noted for a write is compared with that at which it was made here.
 */
export class NatsQuotaRecords implements QuotaRecords {
  readonly slice = SLICE;
  readonly #records: NatsRecords;
  #written: Written | null = null;
  /** What the NATS server's clock shows beyond this one's, in milliseconds. */
  #aheadMs = 0;

  private constructor(records: NatsRecords) {
    this.#records = records;
  }

  /** Learns what time it is. @param gateway its id, of which a record is made for a moment @throws StoreError */
  static async open(records: NatsRecords, gateway: string): Promise<NatsQuotaRecords> {
    const quotas = new NatsQuotaRecords(records);
    const key = `clock.${gateway}`;
    await quotas.put(key, '', 0);
    await quotas.get(key);
    await records.remove(key);
    return quotas;
  }

  async get(key: string): Promise<{ text: string; revision: number }> {
    const record = await this.#records.get(key);
    if (record === null) return { text: '', revision: 0 };
    const written = this.#written;
    if (written?.key === key && written.revision === record.revision)
      this.#aheadMs = record.writtenMs - written.atMs;
    return record;
  }

  async put(key: string, text: string, revision: number): Promise<boolean> {
    const startMs = Date.now();
    const written = await this.#records.put(key, text, revision);
    if (written === null) return false;
    this.#written = { key, revision: written, atMs: (startMs + Date.now()) / 2 };
    return true;
  }

  nowMs(): number {
    return Date.now() + this.#aheadMs;
  }
}
