/** Dates of the proleptic Gregorian calendar, as RFC 3339 has them: 29 February in leap years alone. */
const DATE = [
  '(([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])))',
  '|(([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29))',
].join('');
const TIME = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])';
const LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const SHORT_LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,14}[A-Za-z0-9])?';
/** Of at most 253 characters. */
const HOST = `${LABEL}(\\.${LABEL}){0,2}(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,59}[A-Za-z0-9])?)?`;
const BYTE = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `${BYTE}(\\.${BYTE}){3}`;
const GROUP = '[0-9A-Fa-f]{1,4}';
/** Eight groups, or fewer around one :: in place of groups of zeros. */
const IPV6 = [
  `${GROUP}(:${GROUP}){7}`,
  `(${GROUP}:){1,7}:`,
  `:(:${GROUP}){1,7}`,
  '::',
  ...[1, 2, 3, 4, 5, 6].map((before) => `(${GROUP}:){${before}}(:${GROUP}){1,${7 - before}}`),
].join('|');
const IN_URI = "[A-Za-z0-9._~!$&'()*+,;=:@-]";
const URI_CHARACTER = `(${IN_URI}|%[0-9A-Fa-f]{2})`;
/** With the rest at most 2083 characters, as many as generators of schemas allow an address to have. */
const TAIL = `(\\?(${URI_CHARACTER}|[/?]){0,96})?(#(${URI_CHARACTER}|[/?]){0,32})?`;
/** Characters of a relative reference, whose first part has no colon. */
const IN_PATH = "([A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})";
const PATH = `(/${URI_CHARACTER}{0,64}){0,6}`;
const TIME_SPAN = 'T[0-9]{1,9}(H([0-9]{1,9}M([0-9]{1,9}S)?)?|M([0-9]{1,9}S)?|S)';

const HEX = '[0-9a-fA-F]';
const uuid = (version: string, variant: string) =>
  `${HEX}{8}-${HEX}{4}-${version}${HEX}{3}-${variant}${HEX}{3}-${HEX}{12}`;
const BASE64 = '([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?';
const BASE64URL = '([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2,3})?';
const ANY = '[^]*';

const URI = (host: string, path: string) =>
  `[A-Za-z][A-Za-z0-9+.-]{0,15}:(//(${host}|\\[(${IPV6})\\])?(:[1-9][0-9]{0,3})?${path}|${URI_CHARACTER}{1,64}${path})`;
/** Of at most 254 characters, as many as an address may have. */
const EMAIL = `[A-Za-z0-9_+'-]{1,32}(\\.[A-Za-z0-9_+'-]{1,15}){0,2}@([A-Za-z0-9]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?\\.){1,3}[A-Za-z]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?`;

/** Versions of UUIDs that have a format of their own. */
const UUIDS = [1, 3, 4, 5, 6, 7, 8].map((version) => [`uuid${version}`, uuid(`${version}`, '[89abAB]')]);

/** Regular expressions for texts of each `format`: some valid texts may be missing, but no invalid one matches. */
export const STRING_FORMATS: Readonly<Record<string, string>> = {
  date: DATE,
  time: TIME,
  'date-time': `${DATE}T${TIME}`,
  duration: `P([0-9]{1,9}W|([0-9]{1,9}D|[0-9]{1,9}Y([0-9]{1,9}M([0-9]{1,9}D)?)?|[0-9]{1,9}M([0-9]{1,9}D)?)(${TIME_SPAN})?|${TIME_SPAN})`,
  email: EMAIL,
  'idn-email': EMAIL,
  hostname: HOST,
  'idn-hostname': HOST,
  ipv4: IPV4,
  ipv6: IPV6,
  ipvanyaddress: `${IPV4}|${IPV6}`,
  ipv4network: `${IPV4}/([0-9]|[12][0-9]|3[0-2])`,
  uri: `${URI(HOST, PATH)}${TAIL}`,
  iri: `${URI(HOST, PATH)}${TAIL}`,
  'uri-reference': `(${URI(HOST, PATH)}|(\\.{0,2}/)?(${IN_PATH}{1,64}(/${IN_PATH}{0,64}){0,8})?)${TAIL}`,
  'json-pointer': '(/([^/~]|~[01])*)*',
  uuid: uuid(HEX, HEX),
  ...Object.fromEntries(UUIDS),
  base64: BASE64,
  byte: BASE64,
  base64url: BASE64URL,
  jwt: '[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]*',
  e164: '\\+[1-9][0-9]{6,14}',
  // These say how a text is shown or used, not what it looks like.
  password: ANY,
  binary: ANY,
  path: ANY,
  'file-path': ANY,
  'directory-path': ANY,
};

/** Expressions that count nothing themselves, for texts whose length is counted: a product of both would be large. */
export const UNCOUNTED_FORMATS: Readonly<Record<string, { expression: string; upTo: number }>> = {
  // A label has at most 63 characters, and what stands before the @ at most 64.
  email: {
    expression:
      "[A-Za-z0-9_+'-]+(\\.[A-Za-z0-9_+'-]+)*@([A-Za-z0-9]+(-+[A-Za-z0-9]+)*\\.)+[A-Za-z][A-Za-z0-9]*",
    upTo: 64,
  },
  hostname: { expression: '[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)*', upTo: 63 },
  uri: {
    expression: `[A-Za-z][A-Za-z0-9+.-]*:(//[A-Za-z0-9.-]*(:[1-9][0-9]{0,3})?(/${URI_CHARACTER}*)*|${URI_CHARACTER}+(/${URI_CHARACTER}*)*)(\\?(${URI_CHARACTER}|[/?])*)?(#(${URI_CHARACTER}|[/?])*)?`,
    upTo: Number.POSITIVE_INFINITY,
  },
};

/** Shorter texts of some formats, for intersections that would otherwise take too large an automaton. */
export const SHORT_FORMATS: Readonly<Record<string, string>> = {
  email: `[A-Za-z0-9_+'-]{1,24}(\\.[A-Za-z0-9_+'-]{1,12})?@(${SHORT_LABEL}\\.){1,2}[A-Za-z]{2,12}`,
  hostname: `${SHORT_LABEL}(\\.${SHORT_LABEL}){0,2}`,
  uri: `[A-Za-z][A-Za-z0-9+.-]{0,15}:(//(${SHORT_LABEL}(\\.${SHORT_LABEL}){0,3})?(:[1-9][0-9]{0,3})?|${URI_CHARACTER}{1,32})(/${URI_CHARACTER}{0,32}){0,4}(\\?(${URI_CHARACTER}|[/?]){0,64})?`,
};
