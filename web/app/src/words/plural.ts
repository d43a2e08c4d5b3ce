/** Words that follow a number; `#` stands for it. */
export function pluralOf(
  locale: string,
  forms: Partial<Record<Intl.LDMLPluralRule, string>> & { other: string },
): (count: number) => string {
  const rules = new Intl.PluralRules(locale);
  const numbers = new Intl.NumberFormat(locale);
  return (count) => (forms[rules.select(count)] ?? forms.other).replace('#', numbers.format(count));
}
