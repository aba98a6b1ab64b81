/** A format of a structural tag, as the engine's guides have it. */
export type TagFormat = { readonly type: string } & { readonly [field: string]: unknown };

export const text = (value: string): TagFormat => ({ type: 'const_string', value });
export const sequence = (...elements: TagFormat[]): TagFormat => ({ type: 'sequence', elements });
export const either = (...elements: TagFormat[]): TagFormat => ({ type: 'or', elements });
