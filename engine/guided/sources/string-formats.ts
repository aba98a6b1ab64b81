/** Dates with a month and a day that every year has; 29 February is left out. */
const DATE =
  '[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))';
const TIME = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])';
const LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const HOST = `${LABEL}(\\.${LABEL}){0,3}`;
const BYTE = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const GROUP = '[0-9A-Fa-f]{1,4}';

/** Regular expressions for texts of each `format`: some valid texts may be missing, but no invalid one matches. */
export const STRING_FORMATS: Readonly<Record<string, string>> = {
  date: DATE,
  time: TIME,
  'date-time': `${DATE}T${TIME}`,
  duration:
    'P([0-9]{1,9}W|[0-9]{1,9}D(T[0-9]{1,9}H)?|T[0-9]{1,9}(H([0-9]{1,9}M([0-9]{1,9}S)?)?|M([0-9]{1,9}S)?|S)|[0-9]{1,9}Y([0-9]{1,9}M([0-9]{1,9}D)?)?|[0-9]{1,9}M([0-9]{1,9}D)?)',
  email: `[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,31})?@${LABEL}(\\.${LABEL}){1,2}`,
  hostname: HOST,
  ipv4: `${BYTE}(\\.${BYTE}){3}`,
  ipv6: `${GROUP}(:${GROUP}){7}`,
  uri: `https?://${HOST}(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~-]{0,64}){0,8}(\\?[A-Za-z0-9._~=&-]{0,64})?`,
  uuid: '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}',
};
