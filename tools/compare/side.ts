/** The contract between the sides of a comparison. */

/** Values of one measurement, by name. */
export type Values = Readonly<Record<string, number>>;

export interface SideName {
  engine: string;
  format: string;
}

/** Facts about a side that are kept with its measurements. */
export interface SideInfo extends SideName {
  /** 'engine format'. */
  name: string;
  /** Bytes of the file with the weights. */
  bytes: number;
  /** Measurements of another version do not count. */
  version: string;
}

/** An engine with one format of the weights. `S` is what differs between the columns of the comparison. */
export interface Side<S> extends SideInfo {
  /** False where this side has nothing for a column. */
  measures?(shape: S): boolean;
  measure(shape: S): Promise<Values> | Values;
}

/** A side that is not there yet: opening it may fetch, build or convert something. */
export interface Candidate<S> extends SideName {
  open(): Promise<Side<S>> | Side<S>;
}

/** A column of the comparison under its name. */
export interface Named<S> {
  name: string;
  shape: S;
}

/**
 * Sides and columns that `--only` leaves: an item is an engine, engine:format, or a column (or the part in
 * front of its '+'). Where no item names a side, all stay; the same for columns. @throws for an item that names nothing.
 */
export function selectOnly<T extends SideName, C extends { name: string }>(
  items: readonly string[],
  sides: readonly T[],
  columns: readonly C[],
): { sides: T[]; columns: C[] } {
  const namesSide = (item: string, { engine, format }: SideName) =>
    [engine, `${engine}:${format}`].some((name) => name.toLowerCase() === item.toLowerCase());
  const namesColumn = (item: string, { name }: C) => item === name || item === name.split('+')[0];
  const chosenSides = sides.filter((side) => items.some((item) => namesSide(item, side)));
  const chosenColumns = columns.filter((column) => items.some((item) => namesColumn(item, column)));
  for (const item of items) {
    if (sides.some((side) => namesSide(item, side)) || columns.some((column) => namesColumn(item, column)))
      continue;
    const known = [
      ...sides.map(({ engine, format }) => `${engine}:${format}`),
      ...columns.map(({ name }) => name),
    ];
    throw new Error(`--only: nothing here is named '${item}'; there are ${known.join(', ')}.`);
  }
  return {
    sides: chosenSides.length > 0 ? chosenSides : [...sides],
    columns: chosenColumns.length > 0 ? chosenColumns : [...columns],
  };
}
