import type { OtherField, OtherFields } from './fields-node.js';

/** A field that never changes an answer. */
export const NO_BEARING: OtherField = { why: '', harmless: 'any' };

/** A field that would change the answer. @param harmless values with which it would not, besides null */
export function lacking(why: string, ...harmless: readonly unknown[]): OtherField {
  return { why: `this server does not have ${why}`, harmless };
}

/** A field that has another name here. */
export function named(here: string, ...harmless: readonly unknown[]): OtherField {
  return { why: `use '${here}'`, harmless };
}

/** Fields that set something for a field that is off, or that concern only another server's own work. */
export function withoutBearing(names: string): OtherFields {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, NO_BEARING]));
}

/** The same without those that a route has. @param names separated by spaces */
export function without(fields: OtherFields, names: string): OtherFields {
  const left = new Set(names.split(/\s+/));
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !left.has(name)));
}
