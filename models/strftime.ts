const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

const two = (value: number) => String(value).padStart(2, '0');

/** C's strftime in local time and English, for the codes that chat templates use; other codes stay as they are. */
export function strftime(date: Date, format: string): string {
  const hour12 = date.getHours() % 12 || 12;
  const values: Record<string, string> = {
    A: DAYS[date.getDay()]!,
    a: DAYS[date.getDay()]!.slice(0, 3),
    B: MONTHS[date.getMonth()]!,
    b: MONTHS[date.getMonth()]!.slice(0, 3),
    d: two(date.getDate()),
    e: String(date.getDate()).padStart(2, ' '),
    H: two(date.getHours()),
    I: two(hour12),
    M: two(date.getMinutes()),
    m: two(date.getMonth() + 1),
    p: date.getHours() < 12 ? 'AM' : 'PM',
    S: two(date.getSeconds()),
    Y: String(date.getFullYear()),
    y: two(date.getFullYear() % 100),
    '%': '%',
  };
  const flat: Record<string, string> = {
    F: `${values.Y}-${values.m}-${values.d}`,
    T: `${values.H}:${values.M}:${values.S}`,
  };
  // %-d is glibc's form without padding.
  return format.replace(/%(-?)([A-Za-z%])/g, (code, unpadded: string, letter: string) => {
    const value = values[letter] ?? flat[letter];
    if (value === undefined) return code;
    return unpadded === '-' ? value.replace(/^[0 ](?=.)/, '') : value;
  });
}
