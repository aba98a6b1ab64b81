/** Where the records of keys are: in this process, or where several servers share them. */
export interface QuotaRecords {
  /** Revision 0: there is none. @throws where it cannot be reached */
  get(key: string): Promise<{ text: string; revision: number }>;
  /**
   * False: another server has changed it before, and nothing is written.
   * @throws where it is not known whether it was written
   */
  put(key: string, text: string, revision: number): Promise<boolean>;
  /** Milliseconds since 1970, by the clock that all who share the records go by. */
  nowMs(): number;
  /** Share of a limit that is drawn at once, at least: 1 where no other server draws. */
  readonly slice: number;
}

/** Records of one server alone. */
export class OwnQuotaRecords implements QuotaRecords {
  readonly slice = 1;
  readonly #records = new Map<string, { text: string; revision: number }>();

  async get(key: string): Promise<{ text: string; revision: number }> {
    return this.#records.get(key) ?? { text: '', revision: 0 };
  }

  async put(key: string, text: string, revision: number): Promise<boolean> {
    this.#records.set(key, { text, revision: revision + 1 });
    return true;
  }

  nowMs(): number {
    return Date.now();
  }
}
