/** The selected request: the one under the pointer, else the one chosen by keyboard. */
export class Selection {
  #pointed: number | null = null;
  #chosen: number | null = null;
  readonly #listeners: (() => void)[] = [];

  get id(): number | null {
    return this.#pointed ?? this.#chosen;
  }

  /** The request chosen by keyboard or screen reader. */
  get chosen(): number | null {
    return this.#chosen;
  }

  point(id: number | null): void {
    if (id === this.#pointed) return;
    this.#pointed = id;
    this.#tell();
  }

  choose(id: number | null): void {
    if (id === this.#chosen) return;
    this.#chosen = id;
    this.#tell();
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
