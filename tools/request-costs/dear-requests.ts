import type { Random } from '../soak/random.js';
import { DEAR_ROUTES, type DearRoute, type Fields, type ModelSizes } from './dear-fields.js';
import type { DearRequest } from './measure.js';

/** Which model each route is asked of. */
export type ModelOf = (path: string) => string;

/** Of each field of each route each dear value, alone. */
export function singleRequests(sizes: ModelSizes, modelOf: ModelOf, paths: readonly string[]): DearRequest[] {
  return paths.flatMap((path) =>
    fieldsOf(path).flatMap((field) =>
      valuesOf(path, field, sizes).map((fields, index) => {
        const name = `${path} ${field}${index === 0 ? '' : ` (${index + 1})`}`;
        return requestOf(name, path, modelOf(path), fields);
      }),
    ),
  );
}

/** Some dear fields together. The same for a seed on every machine. */
export function randomRequest(random: Random, sizes: ModelSizes, modelOf: ModelOf, paths: readonly string[]): DearRequest {
  const path = random.pick(paths);
  const count = random.integer(2, 5);
  const chosen = Array.from({ length: count }, () => random.pick(fieldsOf(path)));
  const picked = chosen.map((field) => {
    const values = valuesOf(path, field, sizes);
    return { field, index: random.integer(0, values.length - 1), values };
  });
  const fields = Object.assign({}, ...picked.map(({ values, index }) => values[index]!)) as Fields;
  const name = picked.map(({ field, index }) => (index === 0 ? field : `${field} (${index + 1})`)).join(' + ');
  return requestOf(`${path} ${name}`, path, modelOf(path), fields);
}

/** Fields that the route has by its own description. */
const fieldsByRoute = new Map<string, readonly string[]>();

/** Tells which fields each route has: entries that several routes share may be of more. */
export function describeRoutes(fields: ReadonlyMap<string, readonly string[]>): void {
  for (const [path, names] of fields) fieldsByRoute.set(path, names);
}

function fieldsOf(path: string): readonly string[] {
  const names = fieldsByRoute.get(path) ?? [];
  return names.filter((name) => name in DEAR_ROUTES[path]!.fields);
}

function valuesOf(path: string, field: string, sizes: ModelSizes): Fields[] {
  const known = new Set(fieldsByRoute.get(path));
  return routeOf(path).fields[field]!(sizes).map((value) => {
    const fields = typeof value === 'string' ? { [field]: value } : value;
    return Object.fromEntries(Object.entries(fields).filter(([name]) => known.has(name)));
  });
}

function routeOf(path: string): DearRoute {
  return DEAR_ROUTES[path]!;
}

function requestOf(name: string, path: string, model: string, fields: Fields): DearRequest {
  const all = { ...routeOf(path).plain, ...fields, model: JSON.stringify(model) };
  const text = Object.entries(all).map(([field, value]) => `${JSON.stringify(field)}:${value}`);
  return { name, path, body: Buffer.from(`{${text.join()}}`) };
}
