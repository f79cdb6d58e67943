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

// Only the tests have a service that takes payments.
export default url ? stories : {};
