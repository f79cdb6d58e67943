const { SELLING_URL: url, CONTROL_URL: control } = process.env;

const stories = {
  'a plan is bought: who has paid comes back, and has it': async (come) => {
    const v = await come({ url });
    await v.signUp();
    // The page of the payment provider.
    let paid;
    await v.page.route(
      (address) => address.origin !== new URL(url).origin,
      (route) => {
        paid = route.request().url();
        return route.fulfill({ contentType: 'text/html', body: '<title>Payment</title>' });
      },
    );
    await v.page.getByRole('navigation').getByRole('link', { name: 'Billing', exact: true }).click();
    await v.heading('Billing').waitFor();
    await v.page.getByText('No subscription').waitFor();
    await v.inspect();
    await v.shot('billing');
    const billing = v.page.url();
    await v.button('Choose Standard').click();
    await v.until('the page of the provider is open', async () => (await v.page.title()) === 'Payment');
    await v.page.goto(`${billing}?bought=standard`);
    await v.page.getByText('is in force as soon as the payment is confirmed').waitFor();
    await fetch(`${control}/pay?of=${encodeURIComponent(paid)}`);
    await v.until('the plan is in force', async () => {
      await v.page.reload();
      await v.heading('Billing').waitFor();
      return v.page.getByText('Active', { exact: true }).count();
    });
    await v.page.getByText(/^Paid until /).waitFor();
    await v.inspect();
    await v.shot('billing-bought');
    await v.button('Invoices and payment').click();
    await v.until('the page of the provider is open', async () => (await v.page.title()) === 'Payment');
  },
};

export default {
  'without a payment provider, each plan says why it cannot be chosen': async (come) => {
    const v = await come();
    await v.signUp();
    await v.page.getByRole('navigation').getByRole('link', { name: 'Billing', exact: true }).click();
    await v.page.getByText('No subscription').waitFor();
    await v.page.getByText('This service takes no payments.').waitFor();
    for (const plan of ['Standard', 'Enhanced', 'Enterprise']) {
      const choose = v.button(`Choose ${plan}`);
      if (!(await choose.isDisabled())) throw new Error(`${plan} can be chosen`);
      if (!(await choose.getAttribute('title')).includes('takes no payments'))
        throw new Error(`${plan} does not say why`);
    }
    await v.inspect();
    await v.shot('billing');
  },
  ...(url && stories), // only the tests have a service that takes payments
};
