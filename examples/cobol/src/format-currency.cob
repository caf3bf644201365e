*> Writes the amount on standard input as US dollars: a PICTURE clause does all the work.
identification division.
program-id. format-currency.

data division.
working-storage section.
01  amount-text         pic x(400).
01  amount              pic s9(18)v9(18).
01  cents               pic s9(12)v99.
01  dollars             pic $$$$,$$$,$$$,$$9.99.
01  number-status       pic 9.
01  argument-name       pic x(20) value "amount".

procedure division.
main.
    accept amount-text
    call "parse-number" using amount-text amount number-status
    if number-status not = 0
        call "explain-number" using argument-name number-status
        stop run
    end-if
    compute cents rounded = amount
        on size error
            display "amount is too large: at most $999,999,999,999.99" upon syserr
            move 1 to return-code
            stop run
    end-compute
    move cents to dollars
    *> The sign stands before the dollar, and what rounds to nothing has none.
    if cents < 0
        display "-" function trim(dollars)
    else
        display function trim(dollars)
    end-if
    stop run.

end program format-currency.
