import * as z from 'zod';

/** A field that this server does not have, but that others of its kind, or their clients, do. */
export interface OtherField {
  /** Why it is not supported, or what to use instead. */
  why: string;
  /** Values that ask for nothing, besides null; `any`: the field never changes an answer. */
  harmless: readonly unknown[] | 'any';
}

export type OtherFields = Readonly<Record<string, OtherField>>;

/** The names that an object of a schema has. */
export interface KnownObject {
  /** What is inside of each field; null: nothing with fields of its own. */
  fields: ReadonlyMap<string, FieldsNode | null>;
  /** Fields whose values show which of several objects one is, such as `type` and `role`. */
  tags: readonly (readonly [name: string, values: ReadonlySet<unknown>])[];
  /** True where names are not checked here: any may be there, or the validator refuses them. */
  takesAny: boolean;
  others: OtherFields;
}

/** What the values at one place of a body may be, as far as they have fields. */
export interface FieldsNode {
  objects: readonly KnownObject[];
  /** Items of a list there; null: they have no fields, or there is no list. */
  items: FieldsNode | null;
}

const others = new WeakMap<z.core.$ZodType, OtherFields>();

/** Notes fields of other servers at an object's schema, which stays the one that validates. */
export function withOtherFields<T extends z.ZodObject>(schema: T, fields: OtherFields): T {
  others.set(schema, fields);
  return schema;
}

const nodes = new WeakMap<z.core.$ZodType, FieldsNode | { none: true }>();

/** The fields of a schema, read once; null: its values have none. */
export function fieldsNode(schema: z.core.$ZodType): FieldsNode | null {
  const known = nodes.get(schema);
  if (known !== undefined) return 'none' in known ? null : known;
  const node = readNode(schema);
  nodes.set(schema, node ?? { none: true });
  return node;
}

function readNode(schema: z.core.$ZodType): FieldsNode | null {
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodObject) return { objects: [knownObject(inner)], items: null };
  if (inner instanceof z.ZodArray) {
    const items = fieldsNode(inner.element);
    return items === null ? null : { objects: [], items };
  }
  if (inner instanceof z.ZodUnion) return joined(inner.options.map(fieldsNode));
  return null;
}

/**
 * The schema of the values as they are sent, without what is around it: optional, null, a conversion after
 * it.
 */
export function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodPipe) return unwrapped(schema.in);
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return unwrapped(schema.unwrap());
  return schema;
}

function joined(nodes: readonly (FieldsNode | null)[]): FieldsNode | null {
  const found = nodes.filter((node) => node !== null);
  if (found.length === 0) return null;
  return {
    objects: found.flatMap(({ objects }) => objects),
    items: joined(found.map(({ items }) => items)),
  };
}

function knownObject(schema: z.ZodObject): KnownObject {
  const fields = Object.entries(schema.shape);
  return {
    fields: new Map(fields.map(([name, field]) => [name, fieldsNode(field)])),
    tags: fields.flatMap(([name, field]): [string, ReadonlySet<unknown>][] => {
      const inner = unwrapped(field);
      if (inner instanceof z.ZodLiteral) return [[name, inner.values]];
      const isChoice = inner instanceof z.ZodEnum && (name === 'role' || name === 'type');
      return isChoice ? [[name, new Set(inner.options)]] : [];
    }),
    // `never` refuses others by itself, `unknown` takes them.
    takesAny: schema.def.catchall !== undefined,
    others: others.get(schema) ?? {},
  };
}
