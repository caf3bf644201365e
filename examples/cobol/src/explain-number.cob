*> Says why a number could not be read, and lets the program fail.
identification division.
program-id. explain-number.

data division.
linkage section.
01  argument-name       pic x(20).
01  number-status       pic 9.

procedure division using argument-name number-status.
main.
    evaluate number-status
        when 1
            display function trim(argument-name) " is not a number" upon syserr
        when 2
            display function trim(argument-name)
                " is too large: at most 18 digits before the point" upon syserr
        when 3
            display function trim(argument-name)
                " is too fine: at most 18 digits after the point" upon syserr
        when 4
            display function trim(argument-name)
                " is too long: at most 399 characters" upon syserr
    end-evaluate
    move 1 to return-code
    goback.

end program explain-number.
